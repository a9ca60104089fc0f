"""What knows the host: its seam, logs, scores and refusals."""
