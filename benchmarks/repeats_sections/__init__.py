"""One module per section of ``benchmarks/repeats.py``; each exports ``run(setting) -> Section``."""
