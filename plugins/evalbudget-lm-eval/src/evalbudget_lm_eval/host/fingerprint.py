"""What a model is asked, in short."""

from __future__ import annotations

import hashlib
import json

from evalbudget_lm_eval.host.host_evaluate import PrimedTasks


def fingerprint_of(primed: PrimedTasks) -> str:
    """Short hash of everything the model is asked, to tell whether a journal belongs to these prompts."""
    digest = hashlib.sha256()
    for name in primed.names:
        for doc in primed.documents(name):
            for instance in primed.instances(name, doc):
                told = (name, doc, instance.request_type, instance.repeats)
                digest.update(repr(told).encode())
                digest.update(json.dumps(instance.args, default=_kind, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def _kind(value: object) -> str:
    return type(value).__name__  # pictures and sounds: what they are is in the document
