"""What OpenTelemetry is told of a purchase: exactly what happened, and nothing where it is not loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evalbudget import Budget, Design, Reading
from evalbudget.repeats.samplers import Uniform
from evalbudget.run import Purchase, SharedPurchase


class Told:
    """What an exporter would have sent."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self._exporter = InMemorySpanExporter()
        self.meters = MeterProvider(metric_readers=[self._reader])
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))

    def metrics(self) -> dict[str, Any]:
        data = self._reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics if data is not None else ()
        return {
            each.name.removeprefix("evalbudget."): getattr(point, "value", getattr(point, "count", None))
            for each in found
            for point in each.data.data_points
        }

    @property
    def spans(self) -> Any:
        return self._exporter.get_finished_spans()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    found = Told()
    monkeypatch.setattr("opentelemetry.metrics.get_meter", found.meters.get_meter)
    monkeypatch.setattr("opentelemetry.trace.get_tracer", found.tracers.get_tracer)
    yield found
    found.meters.shutdown()
    found.tracers.shutdown()


def _bought(purchase: Purchase) -> None:
    first, second, third, fourth = purchase.buy(4)
    purchase.tell(Reading(first, 0.5, 1.0))
    purchase.tell(Reading(second, None, 0.5, "down"))
    purchase.withdraw(third)
    purchase.pay(2.0)
    assert fourth.id in purchase.flights


@pytest.mark.parametrize("shared", [False, True])
def test_what_is_told(told: Told, tmp_path: Path, shared: bool) -> None:
    sampler, budget = Uniform(Design(items=("x", "y"), models=("m",), raters=("j",))), Budget(20)
    if shared:
        worker = SharedPurchase(sampler, budget, tmp_path / "store.db")
        other = SharedPurchase(sampler, budget, tmp_path / "store.db")
        _bought(worker)
        other._stale = True  # repeats everything, and tells nothing of it
        other.look()
        worker.close()
        other.close()
    else:
        _bought(Purchase(sampler, budget))
    metrics = told.metrics()
    assert metrics.pop("decision.duration") == 1
    assert metrics == {"asked": 4, "answered": 1, "failed": 1, "spent": 3.5, "promised": 1.0}
    ends = [dict(span.attributes) for span in told.spans]
    assert ends[0] == {
        "evalbudget.sampler": "uniform",
        "evalbudget.unit": "scores",
        "evalbudget.model": "m",
        "evalbudget.item": ends[0]["evalbudget.item"],
        "evalbudget.rater": "j",
        "evalbudget.epoch": 0,
        "evalbudget.cost": 1.0,
        "evalbudget.score": 0.5,
    }
    assert ends[1]["error.type"] == "down"
    assert {span.name for span in told.spans} == {"evalbudget.request"}
    assert len(ends) == 3


def test_a_process_without_it_does_not_load_it() -> None:
    code = (
        "import sys, evalbudget; from evalbudget.run import Purchase; "
        "from evalbudget.repeats.samplers import Uniform; "
        "p = Purchase(Uniform(evalbudget.Design.of_items(2)), evalbudget.Budget(2)); p.buy(1); "
        "assert p._watch is None and 'opentelemetry' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
