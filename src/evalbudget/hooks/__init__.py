"""How plugins are found, and what they may add."""
