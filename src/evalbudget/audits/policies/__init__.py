"""Audits of a cheap judge by few human labels: which system is best, and what the labels prove."""

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies._audit_eprocess import AuditEProcess, HumanOnly
from evalbudget.audits.policies._batch_policy import BatchPolicy
from evalbudget.audits.policies._config import AuditConfig, HumanConfig, PolicyConfig
from evalbudget.audits.policies._lucb import LucbConfig
from evalbudget.audits.policies._policy import AuditPolicy, Context, rebuild
from evalbudget.audits.policies._pp_lucb import PPLUCB
from evalbudget.audits.policies._verdict import DECIDED, AuditOutcome, ModelEstimate, Verdict

__all__ = [
    "DECIDED",
    "PPLUCB",
    "AuditConfig",
    "AuditDraw",
    "AuditEProcess",
    "AuditOutcome",
    "AuditPolicy",
    "BatchPolicy",
    "Coin",
    "Context",
    "HumanConfig",
    "HumanOnly",
    "LucbConfig",
    "ModelEstimate",
    "PolicyConfig",
    "Verdict",
    "rebuild",
]
