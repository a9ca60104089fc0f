"""What knows the host: its context, logs, scores and refusals."""
