"""What `make chaos` is made of: schedules of kills and faults, real commands, and the bill."""
