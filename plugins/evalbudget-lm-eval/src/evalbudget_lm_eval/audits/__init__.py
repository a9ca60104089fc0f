"""Which answer should a human label? lm-eval's side."""
