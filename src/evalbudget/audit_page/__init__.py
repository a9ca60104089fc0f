"""The page on which humans label."""
