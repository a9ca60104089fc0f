"""The local server, with usage in its replies, and what its calls cost."""

from __future__ import annotations

from typing import Any

from evalbudget.prices import Price, Usage
from loopback import Server

PRICE = Price(input=10.0, output=100.0)
PRICE_LINE = "openai-api/here/*: {input: 10, output: 100}\n"


class PaidServer(Server):
    """Counts a third of what it reads, and any number of tokens up to ``max_tokens`` for a reply."""

    @property
    def cost(self) -> float:
        """Of all calls that were served, read or not, in dollars."""
        return sum(PRICE.cost(_usage(one.body)) for one in self.served if one.billed)

    def _completion(self, path: str, body: dict[str, Any], instead: str | None) -> dict[str, Any]:
        said, usage = super()._completion(path, body, instead), _usage(body)
        counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
        return {**said, "usage": {**counts, "total_tokens": usage.tokens}}


def _usage(body: dict[str, Any]) -> Usage:
    text = "".join(str(message["content"]) for message in body["messages"])
    most = int(body.get("max_tokens") or body.get("max_completion_tokens") or 1)
    return Usage(input=1 + len(text) // 3, output=1 + sum(text.encode()) % most)
