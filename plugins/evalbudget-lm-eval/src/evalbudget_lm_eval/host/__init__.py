"""What knows the host: its evaluate in rounds, its answers, logs, scores and refusals."""
