"""What calls cost: prices of models, and usage as providers report it."""

from evalbudget.prices._price import Price, Usage
from evalbudget.prices._price_file import read_prices
from evalbudget.prices._tariff import Tariff, input_tokens_at_most

__all__ = ["Price", "Tariff", "Usage", "input_tokens_at_most", "read_prices"]
