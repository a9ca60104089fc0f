"""Hosts whose models may judge: they are installed beside this package, and without one the others work."""

from __future__ import annotations

from importlib.util import find_spec


def check_installed(host: str) -> None:
    """Name what to install where the plugin of a host is missing.

    Args:
        host: its name, as in ``evalbudget[...]``.

    Raises:
        ModuleNotFoundError: it is missing.
    """
    plugin = f"evalbudget_{host.replace('-', '_')}"
    if find_spec(plugin) is None:
        raise ModuleNotFoundError(
            f"judges on {host} need evalbudget-{host}, which is not installed: pip install "
            f"'evalbudget[{host}]'",
            name=plugin,
        )
