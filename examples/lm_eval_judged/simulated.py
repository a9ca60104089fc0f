"""Judges that need no network, and the stories they judge; the task's YAML loads this file."""

import hashlib

import lm_eval.models  # noqa: F401  (before @register_model, or the host's own models vanish)
import numpy as np
from datasets import Dataset
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model


def stories(**_):
    topics = ("a river", "a clock", "a thief")
    rows = [{"topic": f"{topics[i % 3]} ({i + 1})", "category": topics[i % 3]} for i in range(60)]
    return {"test": Dataset.from_list(rows)}


@register_model("simulated-judge")
class SimulatedJudge(LM):
    """Rates what it is shown, at ``mean`` on average; the same prompt never twice the same."""

    def __init__(self, mean=3.0, sd=0.8, **_):
        super().__init__()
        self.mean, self.sd = float(mean), float(sd)
        self.asked = 0

    def generate_until(self, requests, disable_tqdm=False):
        return [self.rate(request.args[0]) for request in requests]

    def rate(self, prompt):
        self.asked += 1
        digest = hashlib.sha256(f"{self.mean} {self.asked} {prompt}".encode()).digest()
        noise = np.random.default_rng(int.from_bytes(digest[:8])).normal(0, self.sd)
        return f"It holds together. RATING: {np.clip(round(self.mean + noise), 1, 5):g}"

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError("it only rates")

    loglikelihood_rolling = loglikelihood
