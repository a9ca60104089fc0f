"""For authors of samplers: the contract every sampler must keep, as a base class for pytest.

::

    from evalbudget.testing import SamplerContract

    class TestMySampler(SamplerContract):
        def make(self, design, seed):
            return MySampler(design, seed=seed)

Needs pytest, which evalbudget itself does not.
"""

import pytest

pytest.register_assert_rewrite("evalbudget.testing.contract", "evalbudget.testing.play")

from evalbudget.testing.contract import SamplerContract  # noqa: E402
from evalbudget.testing.play import gaussian, play  # noqa: E402

__all__ = ["SamplerContract", "gaussian", "play"]
