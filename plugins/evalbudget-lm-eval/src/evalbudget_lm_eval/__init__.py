"""evalbudget for lm-evaluation-harness."""
