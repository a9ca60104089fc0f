"""Published methods and formulas that the benchmarks compare with; the product does better by other means."""
