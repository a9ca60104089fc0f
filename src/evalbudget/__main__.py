"""``python -m evalbudget``."""

from evalbudget.cli.main import main

main()
