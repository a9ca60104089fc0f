"""Replays recorded judge scores and human labels under audits."""
