"""For authors of samplers, policies, estimators and scorers: the contracts to keep, as classes for pytest.

::

    from evalbudget.testing import AuditPolicyContract, EstimatorContract, SamplerContract, ScorerContract

    class TestMySampler(SamplerContract):
        def make(self, design, seed):
            return MySampler(design, seed=seed)

    class TestMyPolicy(AuditPolicyContract):
        policy = MyPolicy

    class TestMyEstimator(EstimatorContract):
        estimator = MyEstimator

    class TestMyScorer(ScorerContract):
        scorer = MyScorer
        cases = (({"input": "2 + 2?", "target": "4"}, "It is 4.", 1.0),)

Needs pytest, which evalbudget itself does not.
"""

import pytest

pytest.register_assert_rewrite(
    "evalbudget.testing._audits",
    "evalbudget.testing._contract",
    "evalbudget.testing._estimators",
    "evalbudget.testing._play",
    "evalbudget.testing._scorers",
)

from evalbudget.testing._audits import AuditPolicyContract  # noqa: E402
from evalbudget.testing._contract import SamplerContract  # noqa: E402
from evalbudget.testing._estimators import EstimatorContract  # noqa: E402
from evalbudget.testing._play import gaussian, play  # noqa: E402
from evalbudget.testing._scorers import ScorerContract  # noqa: E402

__all__ = [
    "AuditPolicyContract",
    "EstimatorContract",
    "SamplerContract",
    "ScorerContract",
    "gaussian",
    "play",
]
