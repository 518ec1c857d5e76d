"""Appends that are stored exactly once."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

from .errors import TapedeckError
from .follow import back_off
from .transport import Scope, current_scope
from .types import Appended

if TYPE_CHECKING:
    from .session import NewEvent, Session


class Producer:
    """Appends to one session, one append after the other, and repeats an append until it has an
    answer. The server stores each append once.

    ``id`` names the producer in the session; without it, a new one is chosen. A program that is
    restarted under the same id uses the next ``epoch``; the appends of the old process are
    refused from then on. ``give_up`` is how many seconds an append is repeated. After an error
    of the kind ``unavailable`` it is not known whether the append was stored; the next append
    sends it again first. It may be used by several threads.
    """

    def __init__(self, session: Session, id: str | None = None, *, epoch: int = 0, give_up: float = 120.0) -> None:
        self.id = id or "py_" + secrets.token_hex(12)
        self.epoch = epoch
        self._session, self._give_up = session, give_up
        self._lock = threading.Lock()
        self._seq = 0
        self._unknown: tuple[bytes, int | None] | None = None  # the append whose result is not known

    def append(self, *events: NewEvent, expect: int | None = None) -> Appended:
        """Appends events, all of them or none, and returns when they are durable. ``expect`` is
        the head that they need, as in :meth:`tapedeck.Session.append`."""
        from .session import encode_events

        return self.append_encoded(encode_events(events), expect=expect)

    def append_encoded(self, body: bytes, *, expect: int | None = None) -> Appended:
        """Appends a JSON array of events."""
        with self._lock:
            if self._unknown is not None:
                self._repeat(*self._unknown)
            return self._repeat(body, expect)

    def _repeat(self, body: bytes, expect: int | None) -> Appended:
        scope = current_scope.get() or Scope()
        until, attempt = time.monotonic() + self._give_up, 0
        self._unknown = body, expect
        while True:
            try:
                done = self._session.append_encoded(body, expect=expect, producer=(self.id, self.epoch, self._seq))
            except TapedeckError as e:
                attempt += 1
                pause = max(back_off(attempt), e.retry_after or 0)
                if not e.may_pass:
                    self._unknown = None  # it was refused
                    raise
                if scope.closed or time.monotonic() + pause > until:
                    raise
                scope.wait(pause)
                continue
            self._unknown = None
            self._seq += 1
            return done
