"""The ``evalbudget`` command line; every group of commands has its own file."""
