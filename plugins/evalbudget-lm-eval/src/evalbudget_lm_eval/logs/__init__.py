"""What lm-eval's logs say beside the scores: of settings, questions, metrics, tasks, and what is missing."""
