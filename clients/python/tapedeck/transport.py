"""Connections to one server: requests with a deadline, answers with a limit.

The socket is read below http.client, because its own time limit holds for each read and not
for an answer: a server that sends one byte now and then would keep a caller for ever.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import http.client
import io
import json
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from .errors import TapedeckError, error_of

Headers = Mapping[str, str] | Callable[[], Mapping[str, str]]

MAX_ERROR = 64 << 10  # bytes of an error that are read
IDLE = 60.0  # seconds; the server closes a connection that is idle for two minutes
PIECE = 64 << 10  # bytes


class Scope:
    """Everything that one call waits for; close ends the waiting from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._closed = threading.Event()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def hold(self, sock: socket.socket | None) -> None:
        """Makes close shut this socket, or none. It raises if the scope is closed already."""
        with self._lock:
            self._socket = sock
            if sock is not None and self.closed:
                self._socket = None
                raise TapedeckError("unavailable", "the call was ended")

    def close(self) -> None:
        with self._lock:
            self._closed.set()
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # Not the shutdown of an SSL socket: it takes the TLS state away from the reader.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def wait(self, seconds: float) -> None:
        """Waits, or until the scope is closed."""
        self._closed.wait(seconds)


# The scope of the call that runs on this thread. The asynchronous client sets it.
current_scope: contextvars.ContextVar[Scope | None] = contextvars.ContextVar("tapedeck_scope", default=None)


class _Timed(io.RawIOBase):
    """Reads a socket until a deadline. With idle, each read may take that long instead."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self.sock = sock
        self.deadline = deadline
        self.idle: float | None = None
        self.ended = False  # the server has closed the connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.idle if self.idle is not None else self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)
        n = self.sock.recv_into(buffer)
        self.ended = n == 0
        return n


class _Response(http.client.HTTPResponse):
    def __init__(self, deadline: float, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._keep = self.fp  # while it is open, so is the socket
        self.timed = _Timed(sock, deadline)
        self.fp = io.BufferedReader(self.timed, PIECE)

    def _close_conn(self) -> None:
        super()._close_conn()  # type: ignore[misc]  # it is not in the stubs
        self._keep.close()


class _Connection:
    def __init__(self, conn: http.client.HTTPConnection) -> None:
        self.http = conn
        self.used = False
        self.since = time.monotonic()

    def usable(self) -> bool:
        """Whether the server has probably not closed it."""
        sock = self.http.sock
        if sock is None or time.monotonic() - self.since > IDLE:
            return False
        try:
            return not select.select([sock], [], [], 0)[0]
        except (OSError, ValueError):  # closed; or more descriptors than select can take
            return False


class Answer:
    """The answer to a request, with a status below 300. The caller closes it."""

    def __init__(self, transport: Transport, conn: _Connection, resp: _Response, scope: Scope | None) -> None:
        self._transport, self._conn, self._resp, self._scope = transport, conn, resp, scope
        self.status = resp.status
        self.content_type = (resp.headers.get("content-type") or "").split(";")[0].strip().lower()

    def pieces(self) -> Iterator[bytes]:
        """Yields the body. A body that ends too early is an error."""
        try:
            while piece := self._resp.read1(PIECE):
                yield piece
            if self._resp.length:
                raise http.client.IncompleteRead(b"", self._resp.length)
        except TimeoutError as e:
            raise TapedeckError("unavailable", f"the server at {self._transport.base} took too long to send its answer") from e
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as e:
            raise TapedeckError("unavailable", f"the connection to {self._transport.base} broke in the middle of an answer") from e

    def read(self, limit: int) -> bytes:
        out = bytearray()
        for piece in self.pieces():
            out += piece
            if len(out) > limit:
                raise TapedeckError("too_large", f"the answer has more than {limit} bytes", "ask for less, or give the client a larger max_answer")
        return bytes(out)

    def close(self) -> None:
        if self._scope is not None:
            self._scope.hold(None)
        whole = self._resp.isclosed() or self._resp.length == 0
        self._resp.close()
        self._transport.put_back(self._conn, whole and not self._resp.will_close)


class Transport:
    def __init__(
        self, url: str, headers: Headers | None, timeout: float, connect_timeout: float, stall: float,
        max_answer: int, ssl_context: ssl.SSLContext | None,
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise TapedeckError("invalid", f"{url!r} is not the URL of a server", "it looks like http://127.0.0.1:4747")
        if parts.username or parts.password:
            raise TapedeckError("invalid", "the URL of the server has a password", "send it with headers instead")
        self.base = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, port
        self._headers = headers
        self.timeout, self.stall, self.max_answer = timeout, stall, max_answer
        self._connect_timeout = connect_timeout
        self._ssl = None
        if parts.scheme == "https":
            self._ssl = ssl_context or ssl.create_default_context()
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for conn in idle:
            conn.http.close()

    def put_back(self, conn: _Connection, reusable: bool) -> None:
        conn.used, conn.since = True, time.monotonic()
        with self._lock:
            if reusable and len(self._idle) < 16:
                self._idle.append(conn)
                return
        conn.http.close()

    def open(
        self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: bytes | BinaryIO | None = None,
        content_type: str = "", headers: Mapping[str, str] | None = None, accept: str = "application/json",
        timeout: float | None = None, repeatable: bool = False, scope: Scope | None = None,
    ) -> Answer:
        """Sends a request and returns its answer. A repeatable request is sent a second time if
        the server closed an idle connection at that moment."""
        scope = scope or current_scope.get()
        sent = {"Accept": accept, **(headers or {}), **self._more_headers()}
        if content_type:
            sent["Content-Type"] = content_type
        target = self._prefix + path + ("?" + _encode(query) if query else "")
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            conn = self._take()
            try:
                resp = self._send(conn, method, target, body, sent, deadline, scope)
                break
            except TapedeckError:
                conn.http.close()
                if not (conn.used and repeatable) or scope is not None and scope.closed:
                    raise
            except BaseException:
                conn.http.close()
                raise
        answer = Answer(self, conn, resp, scope)
        if resp.status < 300:
            return answer
        text = bytearray()
        with contextlib.suppress(TapedeckError):  # what could be read is shown
            for piece in answer.pieces():
                text += piece
                if len(text) > MAX_ERROR:
                    break
        answer.close()
        raise error_of(resp.status, resp.reason, answer.content_type, {k.lower(): v for k, v in resp.headers.items()}, bytes(text[:MAX_ERROR]))

    def _more_headers(self) -> Mapping[str, str]:
        if callable(self._headers):
            return self._headers()
        return self._headers or {}

    def _take(self) -> _Connection:
        with self._lock:
            while self._idle:
                conn = self._idle.pop()
                if conn.usable():
                    return conn
                conn.http.close()
        made: http.client.HTTPConnection
        if self._ssl is not None:
            made = http.client.HTTPSConnection(self._host, self._port, context=self._ssl, timeout=self._connect_timeout)
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=self._connect_timeout)
        return _Connection(made)

    def _send(
        self, conn: _Connection, method: str, target: str, body: bytes | BinaryIO | None, headers: Mapping[str, str],
        deadline: float, scope: Scope | None,
    ) -> _Response:
        try:
            if conn.http.sock is None:
                conn.http.connect()
        except (OSError, http.client.HTTPException) as e:
            raise TapedeckError(
                "unavailable", f"the server at {self.base} cannot be reached: {e}", "is it running? start it with: tapedeck serve") from e
        sock: socket.socket = conn.http.sock  # type: ignore[assignment]  # it is connected
        if scope is not None:
            scope.hold(sock)
        try:
            sock.settimeout(max(0.001, deadline - time.monotonic()))
            conn.http.response_class = functools.partial(_Response, deadline)  # type: ignore[assignment]
            refused: OSError | None = None
            try:
                conn.http.request(method, target, body=body, headers=dict(headers))
            except (BrokenPipeError, ConnectionResetError) as e:
                refused = e  # a server that refuses a body answers before it has read it
            try:
                resp: _Response = conn.http.getresponse()  # type: ignore[assignment]
            except (OSError, http.client.HTTPException) as e:
                raise refused or e
            if resp.timed.ended:  # http.client takes a head that was cut off for a whole one
                raise ConnectionError("the head of the answer is incomplete")
            return resp
        except TimeoutError as e:
            raise self._unanswered(method, f"the server at {self.base} did not answer in time") from e
        except (ValueError, UnicodeError) as e:
            raise TapedeckError("invalid", f"the request cannot be sent: {e}") from e
        except (OSError, http.client.HTTPException, AttributeError) as e:
            raise self._unanswered(method, f"the connection to {self.base} broke before the answer") from e

    def _unanswered(self, method: str, what: str) -> TapedeckError:
        if method == "GET":  # a read changes nothing
            return TapedeckError("unavailable", what, "try it again")
        return TapedeckError("unavailable", what + "; it is not known whether the server did what was asked", "look before you do it again")

    def stream(self, answer: Answer) -> None:
        """Makes an answer one that never ends, but is never silent for longer than stall."""
        answer._resp.timed.idle = self.stall

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Sends JSON and returns the JSON object of the answer."""
        if body is None:
            return self.call_with(method, path, None, "", repeatable=method == "GET", **options)
        return self.call_with(method, path, encode(body), "application/json", **options)

    def call_with(self, method: str, path: str, body: bytes | BinaryIO | None, content_type: str, **options: Any) -> Any:
        """Sends a body and returns the JSON object of the answer."""
        answer = self.open(method, path, body=body, content_type=content_type, **options)
        try:
            text = answer.read(self.max_answer)
        finally:
            answer.close()
        if answer.status == 204:
            return {}
        out = None
        if answer.content_type == "application/json":
            with contextlib.suppress(ValueError, RecursionError):
                out = json.loads(text)
        if not isinstance(out, dict):
            raise TapedeckError(
                "unsupported", f"the server at {self.base} answered with {answer.content_type or 'something'!r} that is not the JSON of Tapedeck",
                "is a Tapedeck server at this address?", answer.status)
        return out


def encode(value: Any) -> bytes:
    """Returns the JSON of a value."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as e:  # also a lone surrogate
        raise TapedeckError("invalid", f"this cannot be sent as JSON: {e}") from e


def path_of(session: str, *rest: str) -> str:
    """Returns the path of a session. An id that leads to another path is refused here."""
    for part in (session, *rest):
        if not isinstance(part, str) or part in ("", ".", ".."):
            raise TapedeckError("invalid", f"{part!r} is not an id")
    return "/api/v1/sessions/" + "/".join(quote(part, safe="") for part in (session, *rest))


def _encode(query: Mapping[str, Any]) -> str:
    pairs = []
    for name, value in query.items():
        if value is None:
            continue
        for v in value if isinstance(value, (list, tuple)) else [value]:
            pairs.append((name, str(v).lower() if isinstance(v, bool) else str(v)))
    return urlencode(pairs)
