"""Audits as samplers, for replays of recorded scores."""

from evalbudget.audits.samplers.audit_eprocess import AuditEProcess, HumanOnly
from evalbudget.audits.samplers.audit_sampler import AuditSampler
from evalbudget.audits.samplers.pp_lucb import PPLUCB

__all__ = [
    "PPLUCB",
    "AuditEProcess",
    "AuditSampler",
    "HumanOnly",
]
