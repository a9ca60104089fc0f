"""Which cell a request is for: prompts are all that the host's classes hand to their own senders."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from evalbudget.shown import shown_logger
from evalbudget_lm_eval.host.answers import key_of
from evalbudget_lm_eval.host.identity import is_api
from evalbudget_lm_eval.host.responses import Responses, said_to
from evalbudget_lm_eval.host.task_requests import Sent

log = shown_logger(__name__)

NOBODY = ""
"""Of requests that cannot be told: windows of a rolling log-likelihood, pictures."""


Number = tuple[int, int]
"""Which request of its cell a call is for, and which of the calls for that."""


class Owners:
    """Cells of a round by their prompts.

    Several cells may have the same prompt. The host sends them in the order of the round, so that the first
    sent is for the first of them.
    """

    def __init__(self) -> None:
        self._lm: Any = None
        self._waiting: dict[Any, deque[tuple[str, Number]]] = {}
        self._sent: dict[int, tuple[Any, list[str], Number]] = {}
        """Of requests that may be sent again, by identity; each with its object, so that it stays one."""
        self._instances: dict[int, str] = {}

    def begin(self, lm: Any) -> None:
        """A round of this model begins; of the last one nothing is asked any more."""
        self._lm = getattr(lm, "lm", lm)
        self._waiting, self._sent, self._instances = {}, {}, {}

    def expect(self, sent: Sequence[Sent], said: Responses) -> None:
        """These will be asked, but for what was said before."""
        lm = self._lm
        if not is_api(lm):
            self._instances |= {id(one.instance): key_of(one.asked) for one in sent}
            return
        for one in sent:
            there = len(said_to(one, said))
            missing = one.repeats - there
            if missing > 0:
                try:
                    prompt = _prompt(lm, one.instance)
                except Exception:  # whatever a tokenizer raises: who it is for is not worth a run
                    log.debug("a request is not told apart", exc_info=True)
                    continue
                # those that an earlier attempt sent are not known: of what is asked now none has its number
                first, key = there * one.repeats, key_of(one.asked)
                waiting = self._waiting.setdefault(prompt, deque())
                waiting.extend((key, (one.number, number)) for number in range(first, first + missing))

    def of(self, messages: Sequence[Any]) -> list[str]:
        """Whose prompts these are; the same again when the same object is sent again."""
        return self._known(messages)[1]

    def number_of(self, messages: Sequence[Any]) -> Number:
        """Which of its cell's calls this is; again the same when it is sent again."""
        return self._known(messages)[2]

    def _known(self, messages: Sequence[Any]) -> tuple[Any, list[str], Number]:
        known = self._sent.get(id(messages))
        if known is None:
            found = [self._next(message) for message in messages]
            owners, numbers = [key for key, _ in found], [number for _, number in found]
            known = self._sent[id(messages)] = (messages, owners, numbers[0])
        return known

    def answered(self, messages: Sequence[Any]) -> None:
        """It is not sent again."""
        self._sent.pop(id(messages), None)

    def of_instances(self, requests: Sequence[Any]) -> list[str]:
        """Whose the host's requests are, where it hands them over themselves."""
        return [self._instances.get(id(request), NOBODY) for request in requests]

    def _next(self, message: Any) -> tuple[str, Number]:
        waiting = self._waiting.get(_as_key(message))
        return waiting.popleft() if waiting else (NOBODY, (0, 0))


def prompt_sent(lm: Any, instance: Any) -> Any:
    """A request's prompt in the form in which one of the host's API classes sends it: text or tokens."""
    if instance.request_type == "generate_until":
        context = instance.args[0]
        if not lm.tokenized_requests:
            return context
        options = instance.args[1] if len(instance.args) > 1 else {}
        limit = lm.max_length - int(options.get("max_gen_toks", lm._max_gen_toks))
        return lm.tok_encode((context,), add_special_tokens=lm.add_bos_token)[0][-limit:]
    if instance.request_type == "loglikelihood":
        context, continuation = instance.args
        if context:
            before, after = lm._encode_pair(context, continuation)
        else:
            before, after = [lm.prefix_token_id], lm.tok_encode(continuation)
        return (before + after)[-lm.max_length :]
    return lm.tok_encode(instance.args[0])


def _prompt(lm: Any, instance: Any) -> Any:
    return _as_key(prompt_sent(lm, instance))


def _as_key(message: Any) -> Any:
    if isinstance(message, list):
        return tuple(message) if message and isinstance(message[0], int) else json.dumps(message, default=str)
    return message
