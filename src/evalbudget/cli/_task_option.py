"""Which task of a folder of logs is meant."""

from __future__ import annotations

import click

TASK = click.option("--task", metavar="NAME", help="Of a folder with logs of several tasks, only this one's.")
