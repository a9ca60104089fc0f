"""Buying on lm-eval, for runs and races alike: rounds, the record of what was paid for, and going on."""
