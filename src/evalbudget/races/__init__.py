"""Which model? Samplers, predictions from history, estimates, what every host's races share."""
