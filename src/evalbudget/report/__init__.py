"""Reports: what recorded scores prove, as tables, JSON, a picture and a web page.

Example::

    from evalbudget.backtest import RecordedScores
    from evalbudget.report import draw, report

    found = report(RecordedScores.load("scores.npz"), against="baseline")
    print(found.table())
    Path("report.png").write_bytes(draw(found))
"""

from evalbudget.replay._rows import AsJson
from evalbudget.report._charts import Bar, Chart, Histogram
from evalbudget.report._html import page, site
from evalbudget.report._items import Items
from evalbudget.report._numbers import table_of
from evalbudget.report._picture import draw
from evalbudget.report._report import SECTIONS, Report, report
from evalbudget.report._section import Section
from evalbudget.report._study import Study

__all__ = [
    "SECTIONS",
    "AsJson",
    "Bar",
    "Chart",
    "Histogram",
    "Items",
    "Report",
    "Section",
    "Study",
    "draw",
    "page",
    "report",
    "site",
    "table_of",
]
