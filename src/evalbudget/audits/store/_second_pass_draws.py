"""The second pass needs neither model nor judge: whoever looks at a store has its next labels drawn."""

from __future__ import annotations

from evalbudget.audits.store._run import AuditRun
from evalbudget.audits.store._status import Stage, Standing
from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store._store_verdict import weigh
from evalbudget.errors import AuditStoreError


def go_on(store: AuditStore) -> Standing:
    """As :func:`weigh`, once what the second pass has labelled next is in the store.

    It needs no model and no judge, so whoever looks at a store draws it: a page, a command, the run itself.

    Raises:
        AuditStoreError: see weigh.
        ReplayError: see weigh.
    """
    found = weigh(store)
    if not (found.stage is Stage.DRAW and found.pool_used_up):
        return found
    try:
        AuditRun(store)
    except AuditStoreError:  # somebody else has drawn it meanwhile, or the file may only be read
        return weigh(store)
    return weigh(store)
