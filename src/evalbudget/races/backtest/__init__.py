"""Replays recorded scores under samplers that race models."""
