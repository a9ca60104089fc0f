"""Shows the verdict of a gate, and writes it to where builds look for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalbudget.cli._output import publish, say, write_text

if TYPE_CHECKING:
    from evalbudget.comparisons import Gate


def show_gate(
    gate: Gate,
    *,
    json_path: str | None = None,
    markdown_path: str | None = None,
    junit_path: str | None = None,
) -> int:
    """Print the verdict and write the files that are asked for.

    Returns:
        The exit code: 0 not worse, 1 worse, 3 undecided, 4 the candidate could not be evaluated.
    """
    from evalbudget.comparisons import as_junit, as_markdown

    if "-" not in (json_path, markdown_path, junit_path):
        say("\n".join(gate.lines()))
    publish(gate.to_json(), json_path)
    for path, option, text in (
        (markdown_path, "--markdown", as_markdown(gate)),
        (junit_path, "--junit", as_junit(gate)),
    ):
        if path is not None:
            write_text(Path(path), text, option)
    return gate.exit_code
