"""Which way scores are better by their name, where nothing else says it: nobody wants a higher error rate."""

from __future__ import annotations

import re

_ERRORS = frozenset(
    (
        *("error", "errors", "err", "mistake", "mistakes", "wer", "cer", "ter", "mer", "hallucination"),
        *(
            "hallucinations",
            "loss",
            "losses",
            "perplexity",
            "ppl",
            "bpb",
            "nll",
            "mae",
            "mse",
            "rmse",
            "mape",
        ),
        *("brier", "ece", "latency"),
    )
)
_OF = frozenset(("rate", "rates", "ratio", "share", "count", "score", "mean", "total"))


def names_an_error(rater: str) -> bool:
    """Whether a scorer, metric or key of a score is called by what is the better the less there is of it.

    Args:
        rater: its name; what stands before a dot or after a comma does not count: ``judge.word_error_rate``,
            ``error_rate,none``. ``error_free`` and ``loss_improvement`` are no errors.
    """
    name = re.split(r"[,(\[]", rater)[0].rpartition(".")[2]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()
    parts = re.findall(r"[a-z0-9]+", words)
    while len(parts) > 1 and parts[-1] in _OF:
        parts.pop()
    return bool(parts) and parts[-1] in _ERRORS
