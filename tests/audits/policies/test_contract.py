from __future__ import annotations

from typing import Any, ClassVar

import pytest

from evalbudget.audits.policies import PPLUCB, AuditEProcess, HumanOnly
from evalbudget.audits.policies._lucb import Allocator
from evalbudget.testing import AuditPolicyContract


class TestAuditEProcess(AuditPolicyContract):
    policy = AuditEProcess
    options: ClassVar[dict[str, Any]] = {"pilot": 12, "labels_per_batch": 8}


class TestAuditEProcessWithAMargin(AuditPolicyContract):
    policy = AuditEProcess
    options: ClassVar[dict[str, Any]] = {"pilot": 12, "labels_per_batch": 8, "margin": 0.05}


class TestHumanOnly(AuditPolicyContract):
    policy = HumanOnly
    options: ClassVar[dict[str, Any]] = {"pilot": 12, "labels_per_batch": 10}


TRUTH = [0.01, 0.02, 0.03]


@pytest.mark.parametrize("allocator", [each.value for each in Allocator], scope="class")
class TestPPLUCB(AuditPolicyContract):
    policy = PPLUCB

    @pytest.fixture(autouse=True)
    def _by(self, allocator: str) -> None:
        self.options = {"allocator": allocator, "truth": TRUTH, "rho": 0.3}  # type: ignore[misc]


class TestPPLUCBInBatches(AuditPolicyContract):
    policy = PPLUCB
    options: ClassVar[dict[str, Any]] = {"errata": "fixed", "batch": 5, "pulls": 50}
