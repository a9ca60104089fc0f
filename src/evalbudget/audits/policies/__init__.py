"""Audits of a cheap judge by few human labels: which system is best, and what the labels prove."""

from evalbudget.audits.draw import AuditDraw, Coin
from evalbudget.audits.policies.audit_eprocess import AuditEProcess, HumanOnly
from evalbudget.audits.policies.batch_policy import BatchPolicy
from evalbudget.audits.policies.config import AuditConfig, HumanConfig, NoGo, PolicyConfig
from evalbudget.audits.policies.policy import AuditPolicy, Context
from evalbudget.audits.policies.pp_lucb import PPLUCB, LucbConfig
from evalbudget.audits.policies.replay import rebuild
from evalbudget.audits.policies.verdict import DECIDED, AuditOutcome, ModelEstimate, Verdict

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
    "NoGo",
    "PolicyConfig",
    "Verdict",
    "rebuild",
]
