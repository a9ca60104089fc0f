"""What the replays of recorded scores share."""
