"""For authors of samplers and audit policies: the contracts they must keep, as base classes for pytest.

::

    from evalbudget.testing import AuditPolicyContract, SamplerContract

    class TestMySampler(SamplerContract):
        def make(self, design, seed):
            return MySampler(design, seed=seed)

    class TestMyPolicy(AuditPolicyContract):
        policy = MyPolicy

Needs pytest, which evalbudget itself does not.
"""

import pytest

pytest.register_assert_rewrite(
    "evalbudget.testing._audits", "evalbudget.testing._contract", "evalbudget.testing._play"
)

from evalbudget.testing._audits import AuditPolicyContract  # noqa: E402
from evalbudget.testing._contract import SamplerContract  # noqa: E402
from evalbudget.testing._play import gaussian, play  # noqa: E402

__all__ = ["AuditPolicyContract", "SamplerContract", "gaussian", "play"]
