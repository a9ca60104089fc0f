"""Audits of a cheap judge by few human labels: which system is best, and what the labels prove."""

from evalbudget.audits.policies.config import AuditConfig, NoGo
from evalbudget.audits.policies.replay import rebuild, replay
from evalbudget.audits.policies.session import AuditSession, Context
from evalbudget.audits.policies.verdict import DECIDED, AuditOutcome, ModelEstimate, Verdict

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
