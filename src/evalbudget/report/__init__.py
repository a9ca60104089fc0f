"""Reports: what recorded scores prove, as tables, JSON, a picture and a web page.

Example::

    from evalbudget.backtest import RecordedScores
    from evalbudget.report import draw, report

    found = report(RecordedScores.load("scores.npz"), against="baseline")
    print(found.table())
    Path("report.png").write_bytes(draw(found))
"""

from evalbudget.report.html import page
from evalbudget.report.picture import draw
from evalbudget.report.result import SECTIONS, Report, report
from evalbudget.report.section import Bar, Chart, Section
from evalbudget.report.study import Study

__all__ = ["SECTIONS", "Bar", "Chart", "Report", "Section", "Study", "draw", "page", "report"]
