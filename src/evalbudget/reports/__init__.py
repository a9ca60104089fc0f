"""Reports: what recorded scores prove, as tables, JSON, a picture and a web page.

Example::

    from evalbudget.backtest import RecordedScores
    from evalbudget.reports import draw, report

    found = report(RecordedScores.load("scores.npz"), against="baseline")
    print(found.table())
    Path("report.png").write_bytes(draw(found))
"""

from evalbudget.reports.html import page
from evalbudget.reports.picture import draw
from evalbudget.reports.result import SECTIONS, Report, report
from evalbudget.reports.section import Bar, Chart, Section
from evalbudget.reports.study import Study

__all__ = ["SECTIONS", "Bar", "Chart", "Report", "Section", "Study", "draw", "page", "report"]
