"""Replays recorded scores under samplers that repeat items."""
