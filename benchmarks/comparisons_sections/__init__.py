"""Gates and comparisons: wrong verdicts, and what right ones cost."""
