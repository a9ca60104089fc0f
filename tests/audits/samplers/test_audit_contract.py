from __future__ import annotations

from typing import ClassVar

from evalbudget.audits.samplers import PPLUCB, AuditEProcess, HumanOnly
from evalbudget.design import Design
from evalbudget.sampler import Sampler
from evalbudget.testing import SamplerContract


class _Audits(SamplerContract):
    n_items: ClassVar[int] = 40
    n_models: ClassVar[int] = 3
    n_raters: ClassVar[int] = 2
    n_requests: ClassVar[int] = 60
    asks_everything: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    score_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)


class TestAuditEProcessOfOneSystem(_Audits):
    n_models: ClassVar[int] = 1

    def make(self, design: Design, seed: int) -> Sampler:
        return AuditEProcess(design, seed=seed, pilot=12, batch=8, half_width=0.05)


class TestAuditEProcess(_Audits):
    score_range: ClassVar[tuple[float, float] | None] = (-2.0, 5.0)

    def make(self, design: Design, seed: int) -> Sampler:
        return AuditEProcess(
            design, seed=seed, score_range=(-2.0, 5.0), coin="shared", pilot=12, batch=8, max_labels=30
        )


class TestPPLUCBNeyman(_Audits):
    def make(self, design: Design, seed: int) -> Sampler:
        return PPLUCB(design, seed=seed, allocator="neyman", errata="fixed", pulls=50)


class TestHumanOnly(_Audits):
    def make(self, design: Design, seed: int) -> Sampler:
        return HumanOnly(design, seed=seed, batch=10)
