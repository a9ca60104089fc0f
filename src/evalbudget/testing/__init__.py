"""For authors of samplers, audit policies and estimators: the contracts to keep, as base classes for pytest.

::

    from evalbudget.testing import AuditPolicyContract, EstimatorContract, SamplerContract

    class TestMySampler(SamplerContract):
        def make(self, design, seed):
            return MySampler(design, seed=seed)

    class TestMyPolicy(AuditPolicyContract):
        policy = MyPolicy

    class TestMyEstimator(EstimatorContract):
        estimator = MyEstimator

Needs pytest, which evalbudget itself does not.
"""

import pytest

pytest.register_assert_rewrite(
    "evalbudget.testing._audits",
    "evalbudget.testing._contract",
    "evalbudget.testing._estimators",
    "evalbudget.testing._play",
)

from evalbudget.testing._audits import AuditPolicyContract  # noqa: E402
from evalbudget.testing._contract import SamplerContract  # noqa: E402
from evalbudget.testing._estimators import EstimatorContract  # noqa: E402
from evalbudget.testing._play import gaussian, play  # noqa: E402

__all__ = ["AuditPolicyContract", "EstimatorContract", "SamplerContract", "gaussian", "play"]
