"""Audits of a cheap judge by few human labels: which system is best, and what the labels prove."""

from evalbudget.audits.config import AuditConfig, NoGo
from evalbudget.audits.replay import rebuild, replay
from evalbudget.audits.session import AuditSession, Context
from evalbudget.audits.verdict import DECIDED, AuditOutcome, ModelEstimate, Verdict

__all__ = [
    "DECIDED",
    "AuditConfig",
    "AuditOutcome",
    "AuditSession",
    "Context",
    "ModelEstimate",
    "NoGo",
    "Verdict",
    "rebuild",
    "replay",
]
