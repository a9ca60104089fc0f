"""What a purchase tells OpenTelemetry, where the process has it: metrics, and a span for each request.

Nothing is set up here: whoever runs the process says where metrics and spans go, as with any program that is
instrumented (``opentelemetry-instrument inspect eval ...``). A process without OpenTelemetry is not made to
load it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalbudget.budget import Unit
from evalbudget.design import Design, Reading, Request

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_NAME = "evalbudget"


class Telemetry:
    """Of one purchase.

    Metrics: ``evalbudget.asked``, ``.answered`` and ``.failed`` (requests), ``.spent`` and ``.promised`` (in
    the unit of the budget), ``.decision.duration`` (seconds for one call of the sampler). Spans:
    ``evalbudget.request``, from the moment when a request is paid for until its reading is told.

    Args:
        sampler: its name, an attribute of everything.
        design: names of models, items and raters, attributes of spans.
        unit: of the budget.
    """

    def __init__(self, sampler: str, design: Design, unit: Unit) -> None:
        from opentelemetry import metrics, trace

        meter = metrics.get_meter(_NAME)
        self._tracer = trace.get_tracer(_NAME)
        self._design = design
        self._about = {"evalbudget.sampler": sampler, "evalbudget.unit": unit.value}
        self._asked = meter.create_counter("evalbudget.asked", "{request}", "Requests handed out")
        self._answered = meter.create_counter("evalbudget.answered", "{request}", "Readings with a score")
        self._failed = meter.create_counter("evalbudget.failed", "{request}", "Readings without a score")
        self._spent = meter.create_counter("evalbudget.spent", description="Cost, in the unit of the budget")
        self._promised = meter.create_up_down_counter(
            "evalbudget.promised", description="Highest cost of what is under way, in the unit of the budget"
        )
        self._decision = meter.create_histogram(
            "evalbudget.decision.duration", "s", "Time that the sampler took to choose"
        )
        self._under_way: dict[int, tuple[Span, float]] = {}

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """The sampler chooses."""
        begun = time.perf_counter()
        yield
        self._decision.record(time.perf_counter() - begun, self._about)

    def sent(self, request: Request, cost: float) -> None:
        """A request is paid for."""
        cell, design = request.cell, self._design
        about: dict[str, str | int] = {
            **self._about,
            "evalbudget.model": design.models[cell.model],
            "evalbudget.item": design.items[cell.item],
            "evalbudget.rater": design.raters[cell.rater],
            "evalbudget.epoch": cell.epoch,
        }
        self._asked.add(1, self._about)
        self._promised.add(cost, self._about)
        span = self._tracer.start_span("evalbudget.request", attributes=about)
        self._under_way[request.id] = span, cost

    def came_back(self, reading: Reading) -> None:
        """Its reading is told."""
        (self._failed if reading.value is None else self._answered).add(1, self._about)
        self.paid(reading.cost)
        found = self._under_way.pop(reading.request.id, None)
        if found is None:
            return
        span, cost = found
        self._promised.add(-cost, self._about)
        span.set_attribute("evalbudget.cost", reading.cost)
        if reading.value is None:
            span.set_attribute("error.type", reading.error or "no score")
        else:
            span.set_attribute("evalbudget.score", reading.value)
        span.end()

    def gave_up(self, request: Request) -> None:
        """It was not sent after all."""
        span, cost = self._under_way.pop(request.id, (None, 0.0))
        if span is not None:
            self._promised.add(-cost, self._about)
            span.end()

    def paid(self, cost: float) -> None:
        """Something was spent."""
        if cost > 0.0:
            self._spent.add(cost, self._about)


def telemetry(sampler: str, design: Design, unit: Unit) -> Telemetry | None:
    """Of a purchase that begins; None where this process has not loaded OpenTelemetry."""
    return Telemetry(sampler, design, unit) if "opentelemetry" in sys.modules else None
