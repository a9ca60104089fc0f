"""What plans look at, out of the cells of a book."""

from __future__ import annotations

import numpy as np

from evalbudget.cells import CAME, TAKEN, Cells
from evalbudget.repeats._rounds import Readings


def table_of(cells: Cells, n_items: int, left: int | None, *, with_costs: bool) -> Readings:
    """Every reading that was handed out, also those that failed, as plans look at them.

    Args:
        cells: of a book.
        n_items: of the design.
        left: how many more readings are paid for.
        with_costs: whether costs are weighed.
    """
    handed = np.flatnonzero((cells.state == TAKEN) | (cells.state == CAME))
    failed = np.repeat(np.arange(cells.item.size), cells.failures)
    row = np.concatenate([handed, failed])
    returned = cells.returned
    each = np.divide(cells.cost, returned, out=np.zeros(cells.cost.size), where=returned > 0)
    under_way = np.concatenate([cells.under_way[handed], np.zeros(failed.size, np.bool_)])
    is_open = np.ones(n_items, np.bool_)
    is_open[[key.item for key in cells.given_up]] = False
    return Readings(
        item=cells.item[row],
        rater=cells.rater[row],
        phase=cells.phase[row],
        value=np.concatenate([cells.value[handed], np.full(failed.size, np.nan)]),
        cost=np.where(under_way, 0.0, each[row]) if with_costs else None,
        under_way=under_way,
        is_open=is_open,
        is_known=np.zeros(n_items, np.bool_),
        left=left,
    )
