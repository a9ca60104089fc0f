"""What allocating by cost is worth, and what a budget in money does to estimates."""
