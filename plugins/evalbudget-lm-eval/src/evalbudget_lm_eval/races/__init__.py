"""Races on lm-eval: one task, several models, and a sampler that decides who is asked what."""
