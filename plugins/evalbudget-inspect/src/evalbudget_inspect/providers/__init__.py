"""Models that need no network: recorded judges and simulated ones."""
