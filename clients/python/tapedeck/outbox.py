"""The events of a run on their way to the log."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from .errors import TapedeckError
from .producer import Producer
from .transport import Scope, current_scope, encode

PACE = 0.03  # seconds between two appends; deltas that arrive meanwhile are one event
BATCH = 1 << 20  # bytes of an append
BATCH_EVENTS = 5000
PENDING = 4 << 20  # bytes that may wait before put waits


class _Delta:
    """Pieces of one text that are sent as one event."""

    def __init__(self, key: tuple[str, str], event: dict[str, Any], delta: str) -> None:
        self.key, self.event, self.parts = key, event, [delta]

    def encoded(self) -> bytes:
        self.event["data"]["delta"] = "".join(self.parts)
        return encode(self.event)


class Outbox:
    """Sends events in the background, in their order, as a producer.

    ``explain`` turns the error that ends the outbox into the one that callers get, and
    ``on_fail`` is called with that one, once.
    """

    def __init__(
        self, producer: Producer, explain: Callable[[TapedeckError], TapedeckError], on_fail: Callable[[TapedeckError], None],
    ) -> None:
        self._producer = producer
        self._explain, self._on_fail = explain, on_fail
        self._change = threading.Condition()
        self._queue: deque[tuple[bytes | _Delta, int]] = deque()
        self._bytes = 0
        self._sending = False
        self._sent = 0.0  # when the newest batch was taken
        self._hurry = 0  # how many callers wait in flush
        self._closed = False
        self._scope = Scope()
        self.error: TapedeckError | None = None
        self._thread = threading.Thread(target=self._run, name="tapedeck-outbox", daemon=True)
        self._thread.start()

    def quiet_for(self) -> float:
        """Returns for how many seconds nothing was sent."""
        return time.monotonic() - self._sent

    def full(self) -> bool:
        return self._bytes > PENDING

    def put(self, event: dict[str, Any]) -> None:
        """Queues an event. It waits only while too much is pending."""
        body = encode(event)
        self._add(body, len(body))

    def put_delta(self, key: tuple[str, str], event: dict[str, Any], delta: str) -> None:
        """Queues a piece of a text. It joins the piece before it if that has the same key."""
        size = len(delta.encode())
        with self._change:
            last = self._queue[-1][0] if self._queue else None
            if isinstance(last, _Delta) and last.key == key and self._queue[-1][1] + size < BATCH and not self._stopped():
                last.parts.append(delta)
                self._queue[-1] = last, self._queue[-1][1] + size
                self._bytes += size
                return
        self._add(_Delta(key, event, delta), size + 200)

    def _stopped(self) -> bool:
        return self._closed or self.error is not None

    def _add(self, item: bytes | _Delta, size: int) -> None:
        with self._change:
            self._change.wait_for(lambda: self._stopped() or not self.full())
            if self.error is not None:
                raise self.error.with_traceback(None)  # each raise adds to it
            if self._closed:
                raise TapedeckError("invalid", "the run has ended")
            self._queue.append((item, size))
            self._bytes += size
            self._change.notify_all()

    def flush(self) -> None:
        """Waits until everything is durable."""
        with self._change:
            self._hurry += 1
            self._change.notify_all()
            try:
                self._change.wait_for(lambda: self._stopped() or not self._queue and not self._sending)
            finally:
                self._hurry -= 1
            if self.error is not None:
                raise self.error.with_traceback(None)  # each raise adds to it

    def fail(self, error: TapedeckError) -> None:
        """Ends the outbox: what has not been sent is dropped, and callers get the error."""
        with self._change:
            if self.error is not None:
                return
            self.error = error
            self._queue.clear()
            self._bytes = 0
            self._change.notify_all()
        self._on_fail(error)

    def close(self) -> None:
        """Ends the thread. What has not been sent is dropped."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._scope.close()
        self._thread.join(1)

    def _run(self) -> None:
        current_scope.set(self._scope)
        try:
            while batch := self._next():
                self._producer.append_encoded(b"[" + b",".join(batch) + b"]")
        except TapedeckError as e:
            if not self._closed:
                self.fail(self._explain(e))
        except BaseException as e:
            self.fail(TapedeckError("internal", f"an append failed: {e!r}"))
            raise

    def _next(self) -> list[bytes]:
        """Waits for the next batch; it is empty if the outbox has ended."""
        with self._change:
            self._sending = False
            self._change.notify_all()
            self._change.wait_for(lambda: self._stopped() or self._queue)
            wait = self._sent + PACE - time.monotonic()
            if wait > 0 and not self.full():
                self._change.wait_for(lambda: self._stopped() or self._hurry or self.full(), wait)
            if self._stopped():
                return []
            self._sent = time.monotonic()
            return self._take()

    def _take(self) -> list[bytes]:
        batch: list[bytes] = []
        total = 0
        while self._queue and len(batch) < BATCH_EVENTS and (not batch or total + self._queue[0][1] <= BATCH):
            item, size = self._queue.popleft()
            total += size
            batch.append(item if isinstance(item, bytes) else item.encoded())
        self._bytes = max(0, self._bytes - total)
        self._sending = True
        return batch
