"""A model that asks for one tool, says words slowly, and costs nothing. Put yours here."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

PACE = float(os.environ.get("PACE", "0.06"))  # seconds for a word
_closed = threading.Event()


@dataclass
class Call:
    """A wish of the model for a tool."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def reply(messages: list[dict[str, Any]]) -> Iterator[str | Call]:
    """Yields the answer to a conversation: pieces of text, and calls of tools."""
    last = messages[-1]
    if last["role"] != "tool":
        yield from _slowly("Let me look.")
        yield Call("temperature", {"city": "Bern"})
        return
    yield from _slowly(f"It is {json.loads(last['content'])['celsius']} degrees. " + "And the sun shines. " * 10)


def close() -> None:
    """Ends the answer that is under way. A real model closes its connection here."""
    _closed.set()


def _slowly(text: str) -> Iterator[str]:
    for word in text.split():
        if _closed.wait(PACE):
            return
        yield word + " "
