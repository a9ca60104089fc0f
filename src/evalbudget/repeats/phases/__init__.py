"""What repeats are bought in: how long phases are, what each item gets of one, and in which order."""
