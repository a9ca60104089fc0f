"""Which item again? Samplers, estimates, the replay of recorded scores, what every host's runs share."""
