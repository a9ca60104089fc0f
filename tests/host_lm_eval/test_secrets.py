"""Keys that a model is given occur in no file of ours, and a run goes on with another key."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.host_lm_eval.worlds import write_task

from evalbudget_lm_eval.cli import lm_eval_command
from loopback import Server

SECRETS = [f"recognisable-{name}" for name in ("argument", "token", "password", "variable")]


def leaks(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.parent.name == "evalbudget-journals" for path in files)
    return [p.name for p in files if any(secret.encode() in p.read_bytes() for secret in SECRETS)]


@pytest.mark.usefixtures("own_tasks_only")
@pytest.mark.parametrize("kind", ["run", "race"])
def test_keys_stay_out_of_records_and_output(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    argument, token, password, variable = SECRETS
    monkeypatch.setenv("OPENAI_API_KEY", variable)
    tasks = write_task(tmp_path / "tasks", n=6)
    address = server.chat.replace("://", f"://me:{password}@")
    given = f"model=m,base_url={address},api_key={argument},auth_token={token},max_retries=1"
    shared = ["--tasks", "numbers", "--include_path", tasks, "--apply_chat_template", "--log_samples"]
    where = ["--output_path", tmp_path / "out"]

    def command(given: str) -> list[str]:
        models = ["--model", "local-chat-completions", "--model_args", given]
        if kind == "race":
            arms = [given, given.replace("model=m", "model=n")]
            models = [f"--arm=a{i}=local-chat-completions:{arm}" for i, arm in enumerate(arms)]
        more = ["--gen_kwargs", "temperature=1", "--vary_seed"] if kind == "run" else []
        return [str(word) for word in (kind, *models, *shared, *where, "--budget", "20", *more)]

    server.fail(401, times=1, after=3)
    told = CliRunner().invoke(lm_eval_command, command(given))
    asked = len(server.served)
    assert asked >= (20 if kind == "run" else 12), (told.output[-3000:], told.exception)
    found = leaks(tmp_path / "out")
    if kind == "run":  # the host writes what was typed into its own results: give keys in variables
        found = [name for name in found if not name.startswith("results_")]
    assert not found
    # the host prints the arguments itself, twice
    lines = [line for line in told.output.splitlines() if "local-chat-completions" not in line]
    assert not any(secret in line for line in lines for secret in SECRETS)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("evalbudget")]
    assert "401" in str(ours) or kind == "race"
    assert not any(secret in str(ours) for secret in SECRETS)
    again = CliRunner().invoke(lm_eval_command, command(given.replace(argument, "another-key")))
    assert again.exit_code == 0, again.output
    assert len(server.served) == asked
