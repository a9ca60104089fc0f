"""Planning (D studies): how many items, generations and judge calls, before anything is spent."""

from evalbudget.planning.rotation import (
    Forecast,
    Plan,
    Prices,
    Refusal,
    forecast,
    plan_for_half_width,
    plan_for_money,
)

__all__ = [
    "Forecast",
    "Plan",
    "Prices",
    "Refusal",
    "forecast",
    "plan_for_half_width",
    "plan_for_money",
]
