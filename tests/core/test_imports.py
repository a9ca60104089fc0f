"""What importing the core drags in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_core_needs_neither_pytest_nor_a_host_and_scipy_waits() -> None:
    code = (
        "import sys\n"
        "for name in ('pytest', 'hypothesis', 'inspect_ai', 'lm_eval'): sys.modules[name] = None\n"
        "import evalbudget, evalbudget.run, evalbudget.hooks._plugins\n"
        "import evalbudget.backtest, evalbudget.repeats.estimates\n"
        "assert 'scipy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_public_names_exist() -> None:
    import evalbudget

    assert all(hasattr(evalbudget, name) for name in evalbudget.__all__)


def test_plugins_are_loaded_without_their_hosts() -> None:
    code = (
        "import sys\n"
        "from evalbudget.hooks._plugins import plugins\n"
        "assert any(info.name == 'inspect' and info.error is None for info in plugins().found)\n"
        "assert not {'inspect_ai', 'lm_eval'} & set(sys.modules)\n"
        "import evalbudget_inspect, evalbudget_lm_eval\n"
        "import evalbudget_pairwise.inspect.command, evalbudget_pairwise.lm_eval.command\n"
        "assert not {'inspect_ai', 'lm_eval'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_scores_in_a_table_are_read_without_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("model,item,score\nm,0,1\nm,1,0\n")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from evalbudget.hooks._plugins import plugins\n"
        "assert plugins().open_scores(Path(sys.argv[1])).models == ('m',)\n"
        "assert not {'inspect_ai', 'lm_eval.api', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "scores.csv")], check=True, timeout=300)


@pytest.mark.parametrize(
    "plugin", ["evalbudget_inspect", "evalbudget_lm_eval", "evalbudget_pairwise", "evalbudget_labelling"]
)
def test_public_names_of_plugins_exist(plugin: str) -> None:
    module = pytest.importorskip(plugin)
    assert all(getattr(module, name) for name in module.__all__)
