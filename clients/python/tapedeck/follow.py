"""Following a session."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from .errors import MalformedError, TapedeckError
from .sse import Frame, frames
from .transport import Scope, Transport
from .types import Event, event_of


def back_off(attempt: int) -> float:
    """How many seconds to wait before the next connection; attempt counts from 1."""
    return min(0.1 * 2 ** min(attempt - 1, 6), 5.0)


class Follower(Iterator[Event]):
    """Iterates over the events of a session: those that exist and those to come, each exactly once.

    It connects again from its cursor after a lost connection, a restart of the server, or a
    stream that sends nothing, not even the server's comments. It ends when the session is closed,
    or as ``until`` asks. If the session is another one after a new connection, because it was
    recreated or restored from a backup, the error has the kind ``replaced``. An error of the server that cannot pass, and a server that is away for
    longer than ``give_up``, is a :class:`TapedeckError`; the cursor stays where it is.

    Attributes: ``cursor``, the offset that it wants next. ``caught_up``, true once all events
    that existed when it began have been returned.
    """

    def __init__(
        self, transport: Transport, path: str, query: dict[str, Any], start: int, give_up: float | None,
        on_reconnect: Callable[[int, TapedeckError], None] | None,
    ) -> None:
        self.cursor = start
        self.caught_up = False
        self._transport, self._path, self._query = transport, path, query
        self._give_up, self._on_reconnect = give_up, on_reconnect
        self._last_id: str | None = None
        self._life = ""  # the incarnation of the session, as an id has it: @3
        self._scope = Scope()
        self._heard = time.monotonic()
        self._attempt = 0
        self._done = False
        self._events = self._run()

    def __iter__(self) -> Follower:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, also from another thread that does not wait in it. Then it has no more events."""
        self._scope.close()

    def _run(self) -> Iterator[Event]:
        self._heard = time.monotonic()
        while not self._done and not self._scope.closed:
            try:
                yield from self._connect()
                error = TapedeckError("unavailable", "the stream was cut off")
            except TapedeckError as e:
                if self._scope.closed:
                    return
                if not e.may_pass:
                    raise
                error = e
            if not self._done:
                self._wait(error)

    def _wait(self, error: TapedeckError) -> None:
        self._attempt += 1
        pause = max(back_off(self._attempt), error.retry_after or 0)
        if self._give_up is not None and time.monotonic() + pause - self._heard > self._give_up:
            raise error
        if self._on_reconnect is not None:
            self._on_reconnect(self._attempt, error)
        self._scope.wait(pause)

    def _connect(self) -> Iterator[Event]:
        headers = {}
        if self._last_id is not None:
            # With it, the server knows that a run whose terminal event was received needs no stream.
            headers["Last-Event-ID"] = self._last_id
        answer = self._transport.open(
            "GET", self._path, query={**self._query, "fromOffset": f"{self.cursor}{self._life}"}, headers=headers,
            accept="text/event-stream", repeatable=True, scope=self._scope)
        with contextlib.closing(answer):
            if answer.status == 204:
                self._done = True
                return
            if answer.content_type != "text/event-stream":
                raise TapedeckError(
                    "unsupported", f"the server at {self._transport.base} answered with {answer.content_type!r}, not with a stream of events",
                    "is a Tapedeck server at this address?", answer.status)
            self._transport.stream(answer)
            for frame in frames(answer.pieces(), self._transport.max_answer):
                self._heard, self._attempt = time.monotonic(), 0
                if (event := self._take(frame)) is not None:
                    yield event
                    self._heard = time.monotonic()  # the caller may have taken its time
                if self._done or self._scope.closed:
                    return

    def _take(self, frame: Frame) -> Event | None:
        offset = self._offset(frame.id)
        if frame.event in ("caught-up", "end"):
            self._offset(str(_json(frame.data).get("cursor", "")))
            if offset is not None and offset >= self.cursor:
                self._seen(offset)
            self.caught_up = True
            if frame.event == "end":
                self._done = True
                if _json(frame.data).get("reason") == "deleted":
                    raise TapedeckError("not_found", "the session was deleted")
            return None
        if frame.event not in ("", "message"):
            return None
        if offset is None:
            raise MalformedError("the server sent an event without an offset")
        if offset < self.cursor:  # a proxy has sent it again
            return None
        event = event_of(_json(frame.data), offset)
        self._seen(offset)
        return event

    def _seen(self, offset: int) -> None:
        self._last_id, self.cursor = f"{offset}{self._life}", offset + 1

    def _offset(self, cursor: str) -> int | None:
        """Returns the offset in an id or a cursor, and notes the incarnation of the session in it."""
        number, at, life = cursor.partition("@")
        if not (number.isascii() and number.isdecimal() and len(number) < 20):
            return None
        if at:
            self._life = at + life
        return int(number)


def _json(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise MalformedError(f"the server sent an event that is not JSON: {e}") from e
    if not isinstance(value, dict):
        raise MalformedError("the server sent something that is not an event")
    return value
