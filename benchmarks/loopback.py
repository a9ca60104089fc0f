"""A real OpenAI-compatible HTTP server on loopback: models and judges without a network.

Answers depend on (model, prompt, seed, temperature) alone, as those of a service that honours seeds: at
temperature 0 the seed does not matter, and at a temperature without a seed every request is another draw.
Latency and failures are scripted; every request is recorded with its body and the status it got.

``python benchmarks/loopback.py --port 8000`` serves by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
GARBLED = -1  # in place of a status: 200, and a page that is no JSON
DROPPED = -2  # hangs up before anything is computed, which costs nothing
ANSWERS = 10  # how many different answers there are


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt of one request, as the function that answers sees it.

    Attributes:
        model: that is asked.
        prompt: text, or the messages' contents, one line each.
        seed: of the request; None if it sent none.
        temperature: of the request.
        luck: in [0, 1), the same for the same model, prompt, seed and temperature.
        body: everything that was sent.
    """

    model: str
    prompt: str
    seed: int | None
    temperature: float
    luck: float
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request.

    Attributes:
        name: for counting.
        status: as in :meth:`Server.fail`.
        delay: seconds before the reply, beside the latency.
        text: said in place of the answer.
        retry_after: seconds, sent with a 429.
    """

    name: str
    status: int | None = 200
    delay: float = 0.0
    text: str | None = None
    retry_after: float = 0


@dataclass(frozen=True, slots=True)
class Served:
    """One request and what became of it.

    Attributes:
        path: of the request.
        body: of the request.
        status: as in :meth:`Server.fail`.
        fault: that disturbed it.
        text: of the first answer; empty if nothing was computed.
        at: when the reply was about to be sent, by ``time.monotonic``.
        usage: tokens that it is billed for, whether or not the reply says so.
    """

    path: str
    body: dict[str, Any]
    status: int | None
    fault: Fault | None = None
    text: str = ""
    at: float = field(default_factory=time.monotonic)
    usage: Mapping[str, int] = field(default_factory=dict)

    @property
    def billed(self) -> bool:
        """Whether it was served, and cost: read or not."""
        return self.status in (200, GARBLED, None)

    @property
    def model(self) -> str:
        """The model asked."""
        return str(self.body.get("model"))

    @property
    def prompt(self) -> str:
        """The first prompt."""
        return _prompts(self.path, self.body)[0]


@dataclass(slots=True)
class _Failure:
    status: int | None
    times: float
    model: str | None
    when: Callable[[dict[str, Any]], bool]
    after: int


class _Meeting:
    """Requests that wait for each other."""

    def __init__(self, n: int, models: Sequence[str]) -> None:
        self._models = models
        self._held = threading.Event()
        self._missing = n
        self._lock = threading.Lock()

    def attend(self, model: str) -> None:
        if self._models and model not in self._models:
            return
        with self._lock:
            self._missing -= 1
            if self._missing <= 0:
                self._held.set()
        self._held.wait(60.0)
        self._held.set()  # who waited in vain waits once


Answer = Callable[[Asked], str]
Meter = Callable[[dict[str, Any], str, str], tuple[int, int]]
"""Input and output tokens of a prompt and its answer, given the whole request."""


def words(body: dict[str, Any], prompt: str, text: str) -> tuple[int, int]:
    """A token is a word."""
    return len(prompt.split()), len(text.split())


def number(asked: Asked) -> str:
    """One of ten answers."""
    return f"Answer: {int(asked.luck * ANSWERS)}"


def rating(low: int = 1, high: int = 5, bias: dict[str, float] | None = None) -> Answer:
    """A judge's reply: a rating on a scale, shifted by the judge's bias and cut to the scale."""

    def answer(asked: Asked) -> str:
        value = low + int(asked.luck * (high - low + 1)) + (bias or {}).get(asked.model, 0.0)
        return f"Reasonable. RATING: {min(max(value, low), high):g}"

    return answer


@dataclass
class Server:
    """Serves from entering the context to leaving it.

    Attributes:
        answer: text for each prompt; may be replaced, also per model in ``answers``.
        answers: by model, before ``answer``.
        latency: seconds before each reply.
        disturb: what happens to a request with this body, None for nothing; asked after ``fail``.
        meter: counts what is billed.
        said: what a reply says of its usage, given what is billed; None for nothing.
        served: every request, in the order of their replies.
        at_once: requests that are here now.
        most_at_once: that were here at any time.
        held: of them that wait for :meth:`release`.
    """

    answer: Answer = number
    answers: dict[str, Answer] = field(default_factory=dict)
    latency: float = 0.0
    disturb: Callable[[dict[str, Any]], Fault | None] = lambda body: None
    meter: Meter = words
    said: Callable[[dict[str, int]], dict[str, int] | None] = lambda usage: usage
    served: list[Served] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    held: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: list[_Failure] = []
        self._draws = 0
        self._meeting: _Meeting | None = None
        self._left: float = math.inf
        self._holds: str | None = None
        self._let_go = threading.Event()
        self._http: ThreadingHTTPServer | None = None

    def gather(self, n: int, *models: str) -> None:
        """Answer nothing until n requests, to these models or to any, are there at once; or for 60 s."""
        self._meeting = _Meeting(n, models)

    def hold(self, after: int, model: str | None = None) -> None:
        """Answer so many requests, to this model or to any, and others once :meth:`release` was called.

        Whoever stops a client in the middle finds it there, however late on a busy machine.
        """
        with self._lock:
            self._left, self._holds = after, model
            self._let_go.clear()

    def release(self) -> None:
        """Answer what is held, and everything after it."""
        with self._lock:
            self._left = math.inf
        self._let_go.set()

    def fail(
        self,
        status: int | None,
        *,
        times: float = 1,
        model: str | None = None,
        when: Callable[[dict[str, Any]], bool] = lambda body: True,
        after: int = 0,
    ) -> None:
        """Answer some of the requests to come with an error.

        Args:
            status: 429, 500 ...; None cuts the connection when the answer is computed, ``DROPPED`` before;
                ``GARBLED`` serves what nobody can read.
            times: how many requests; ``math.inf`` for all.
            model: only requests to this model.
            when: only requests with such a body.
            after: requests that fit and are answered before the first failure.
        """
        with self._lock:
            self._failures.append(_Failure(status, times, model, when, after))

    def calls(self, model: str | None = None) -> int:
        """Requests received, failed ones included."""
        with self._lock:
            return sum(model in (None, s.model) for s in self.served)

    def count(self, status: int | None = 200) -> Counter[str]:
        """Requests with this status, by model."""
        with self._lock:
            return Counter(s.model for s in self.served if s.status == status)

    def forgive(self) -> None:
        """Answer everything from now on."""
        with self._lock:
            self._failures.clear()

    def args_of(self, model: str = "m", **more: Any) -> dict[str, Any]:
        """A host's model_args of a chat model, for Python."""
        return {"model": model, "base_url": self.chat, **more}

    @property
    def billed(self) -> int:
        """Requests that were served, and cost: read or not."""
        with self._lock:
            return sum(s.billed for s in self.served)

    @property
    def chat(self) -> str:
        """For ``base_url`` of local-chat-completions."""
        return self.url + CHAT

    @property
    def completions(self) -> str:
        """For ``base_url`` of local-completions; also give it ``tokenizer_backend=none``."""
        return self.url + COMPLETIONS

    @property
    def url(self) -> str:
        """Root of the server."""
        assert self._http is not None, "the server runs inside its context"
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def chat_args(self, model: str = "m", **more: object) -> str:
        """A host's model_args of a chat model."""
        return _args(model=model, base_url=self.chat, **more)

    def completions_args(self, model: str = "m", **more: object) -> str:
        """A host's model_args of a completions model."""
        return _args(model=model, base_url=self.completions, tokenizer_backend="none", **more)

    def judge(self, model: str, **more: object) -> str:
        """The host's model string of a judge."""
        return f"local-chat-completions:{self.chat_args(model, **more)}"

    # serving

    def start(self, port: int = 0) -> Self:
        """Serve from a thread of its own."""
        server: Server = self

        class Handler(_Handler):
            owner = server

        self._http = _Listener(("127.0.0.1", port), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port."""
        assert self._http is not None
        self.release()
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, ex: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[Served, dict[str, Any]]:
        """What becomes of one request, and the body of the answer."""
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            fits = self._holds in (None, body.get("model"))
            self._left -= fits
            waits = fits and self._left < 0
            self.held += waits
        try:
            if waits:
                self._let_go.wait()
                with self._lock:
                    self.held -= 1
            if self._meeting is not None:
                self._meeting.attend(str(body.get("model")))
            scripted = self._scripted(body)
            fault = Fault("scripted", scripted) if scripted != 200 else self.disturb(body)
            if delay := self.latency + (fault.delay if fault else 0.0):
                time.sleep(delay)
            status, said = self._said(path, body, fault)
            choices = said.get("choices")
            text = _text_of(choices[0]) if choices else ""
            usage = said.get("usage") or {}
            if status in (200, GARBLED, None) and usage:
                told = self.said(usage)
                said = {key: value for key, value in said.items() if key != "usage"}
                said |= {} if told is None else {"usage": told}
            served = Served(path, body, status, fault, text, usage=usage)
            with self._lock:
                self.served.append(served)
            return served, said
        finally:
            with self._lock:
                self.at_once -= 1

    def _said(
        self, path: str, body: dict[str, Any], fault: Fault | None
    ) -> tuple[int | None, dict[str, Any]]:
        status = fault.status if fault else 200
        if status not in (200, GARBLED, None):
            return status, _error(f"scripted {status}")
        if path not in (CHAT, COMPLETIONS):
            return 404, _error(f"there is no {path}")
        if path == COMPLETIONS and body.get("echo"):
            return 400, _error("this server has no log-probabilities")
        return status, self._completion(path, body, fault.text if fault else None)

    def _scripted(self, body: dict[str, Any]) -> int | None:
        with self._lock:
            for failure in self._failures:
                if failure.times <= 0 or failure.model not in (None, body.get("model")):
                    continue
                if not failure.when(body):
                    continue
                if failure.after > 0:
                    failure.after -= 1
                    continue
                failure.times -= 1
                return failure.status
        return 200

    def _completion(self, path: str, body: dict[str, Any], instead: str | None) -> dict[str, Any]:
        choices: list[dict[str, Any]] = []
        prompt_tokens = completion_tokens = 0
        for prompt in _prompts(path, body):
            for copy in range(int(body.get("n") or 1)):
                text = self._text(body, prompt, copy) if instead is None else instead
                text = _stopped(text, body.get("stop"))
                read, written = self.meter(body, prompt, text)
                prompt_tokens += read if copy == 0 else 0
                completion_tokens += written
                said = {"message": {"role": "assistant", "content": text}} if path == CHAT else {"text": text}
                choices.append({"index": len(choices), "finish_reason": "stop", **said})
        return {
            "id": "local",
            "object": "chat.completion" if path == CHAT else "text_completion",
            "model": body.get("model"),
            "choices": choices,
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }

    def _text(self, body: dict[str, Any], prompt: str, copy: int) -> str:
        model, seed = str(body.get("model")), body.get("seed")
        temperature = float(body.get("temperature", 1.0) or 0.0)
        draw: object = seed
        if temperature == 0.0:
            draw = "greedy"
        elif seed is None:
            with self._lock:
                self._draws += 1
                draw = f"draw {self._draws}"
        asked = Asked(model, prompt, seed, temperature, _luck(model, prompt, draw, temperature, copy), body)
        return self.answers.get(model, self.answer)(asked)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are theirs to report."""


class _Handler(BaseHTTPRequestHandler):
    owner: Server
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        served, said = self.owner.reply(self.path, body)
        status = served.status
        if status is None or status == DROPPED:
            self.close_connection = True
            return
        garbled = status == GARBLED
        content = b"<html>one moment</html>" if garbled else json.dumps(said).encode()
        self.send_response(200 if garbled else status)
        self.send_header("Content-Type", "text/html" if garbled else "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == 429:
            self.send_header("Retry-After", f"{served.fault.retry_after if served.fault else 0:g}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def _prompts(path: str, body: dict[str, Any]) -> list[str]:
    if path == CHAT:
        return ["\n".join(_content(message) for message in body.get("messages", []))]
    prompt = body.get("prompt", "")
    if isinstance(prompt, str):
        return [prompt]
    if all(isinstance(part, str) for part in prompt):
        return list(prompt)
    return [json.dumps(part) for part in (prompt if isinstance(prompt[0], list) else [prompt])]


def _text_of(choice: dict[str, Any]) -> str:
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def _content(message: dict[str, Any]) -> str:
    content = message.get("content", "")
    return content if isinstance(content, str) else json.dumps(content)


def _luck(*key: object) -> float:
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _stopped(text: str, stop: str | Iterable[str | None] | None) -> str:
    for mark in [stop] if isinstance(stop, str) else stop or ():
        if mark and mark in text:
            text = text[: text.index(mark)]
    return text


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error"}}


def _args(**args: object) -> str:
    return ",".join(f"{name}={value}" for name, value in args.items())


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--rating", action="store_true", help="answer as a judge, on 1 to 5")
    given = parser.parse_args()
    server = Server(answer=rating() if given.rating else number, latency=given.latency).start(given.port)
    print(server.url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    _main()
