"""Repeats around any async client, without a host: budget, book and an estimate with its interval.

Run it twice: the second run finds the book, buys nothing, and prints the same. With a larger budget it
would buy the rest.
"""

import asyncio
import random

from evalbudget import Design, Request
from evalbudget.book import drive
from evalbudget.repeats.estimates import ItemReadings, mean_over_sampled_items
from evalbudget.repeats.samplers import Auto

ANSWERS = tuple(f"answer-{n:02}" for n in range(30))


async def judge(request: Request) -> float:
    """Ask your client about ANSWERS[request.cell.item]; here a judge whose noise differs between answers."""
    chance = random.Random(repr(request.cell))
    await asyncio.sleep(0.001)
    item = request.cell.item
    return float(min(10, max(1, round(chance.gauss(3 + item / 6, 0.3 + (item % 5) / 2)))))


async def main() -> None:
    sampler = Auto(Design(items=ANSWERS), budget=600)
    bought = await drive(sampler, judge, budget=600, concurrency=20, book="without_a_host.db")
    readings = ItemReadings.of_bought(bought.readings, len(ANSWERS))
    estimate = mean_over_sampled_items(readings, allocation=sampler.allocation, bounds=(1, 10))
    interval = estimate.confidence_interval(0.95)
    print(f"spent {bought.spent:.0f}; estimate {estimate.value:.2f}", end=", ")
    print(f"95% interval {interval.low:.2f} to {interval.high:.2f}: items and repeats both random")


asyncio.run(main())
