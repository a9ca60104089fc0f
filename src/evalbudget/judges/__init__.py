"""Which judge? Schedules, estimates of a panel, plans, the replay of recorded scores."""
