"""What importing the core drags in."""

from __future__ import annotations

import subprocess
import sys


def test_core_needs_neither_pytest_nor_a_host() -> None:
    code = (
        "import sys\n"
        "for name in ('pytest', 'hypothesis', 'inspect_ai', 'lm_eval'): sys.modules[name] = None\n"
        "import evalbudget, evalbudget.run, evalbudget.plugins\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_scipy_waits_until_it_is_needed() -> None:
    code = (
        "import sys\n"
        "import evalbudget.run, evalbudget.plugins, evalbudget.backtest, evalbudget.estimators\n"
        "assert 'scipy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_public_names_exist() -> None:
    import evalbudget

    assert all(hasattr(evalbudget, name) for name in evalbudget.__all__)
