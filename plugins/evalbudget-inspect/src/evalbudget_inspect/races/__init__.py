"""Races on inspect: one task, several models or settings, and a sampler that decides who is asked what."""
