"""Would another sampler have saved money? ``python backtest_in_python.py scores.npz``."""

import sys

from evalbudget.backtest import RecordedScores, backtest

recorded = RecordedScores.load(sys.argv[1])
backtest(recorded, samplers=["uniform", "auto"], budgets=["10x", "20x"], seeds=range(10)).table()
