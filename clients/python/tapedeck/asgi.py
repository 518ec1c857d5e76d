"""Records the streams of an ASGI application in sessions.

:class:`Record` is for applications that answer with the UI message stream of the AI SDK, as
Pydantic AI does. The browser gets the stream unchanged and without a delay.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .aio import AsyncClient, AsyncRun, AsyncSession, in_thread
from .client import Client
from .errors import Cancelled, TapedeckError
from .sse import Parser
from .uimessage import Recorder

log = logging.getLogger("tapedeck")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 10 << 20  # bytes of a request that are read for its messages
MAX_FRAME = 16 << 20  # bytes of one chunk


def chat_id(scope: Scope, body: dict[str, Any]) -> str | None:
    """Returns the id of the chat, which ``useChat`` sends."""
    id = body.get("id")
    return id if isinstance(id, str) else None


class Record:
    """An ASGI application that records what another one streams::

        app = Record(app, Client("http://127.0.0.1:4747"), agent="planner")

    It records the answers to POST requests that have the header
    ``x-vercel-ai-ui-message-stream``. ``session`` returns the id of the session from the ASGI
    scope and the JSON of the request; None means that this request is not recorded. By default it is
    the id of the chat. A session that does not exist is created, with ``owner``.

    If the browser disconnects, the application does not hear it, and the recording continues to
    the end. If a user cancels the run on any screen, the application gets ``http.disconnect``, and
    after ``grace`` seconds its task is cancelled. An error of the recording does not change the
    answer: it is logged, and ``on_error`` is called with it.
    """

    def __init__(
        self, app: App, client: Client | AsyncClient, *, agent: str | None = None, owner: str | None = None,
        actor: str | None = None, thread: str | None = None,
        session: Callable[[Scope, dict[str, Any]], str | None] = chat_id,
        on_error: Callable[[Exception], None] | None = None, grace: float = 5.0,
    ) -> None:
        self.app = app
        self.client = client.sync if isinstance(client, AsyncClient) else client
        self.session, self.owner, self.on_error, self.grace = session, owner, on_error, grace
        self.options = {"agent": agent, "actor": actor, "thread": thread}
        self._working: set[asyncio.Task[None]] = set()  # the loop itself keeps tasks only weakly

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope.get("method") != "POST":
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(self, scope, receive, send)
        task = asyncio.create_task(exchange.work())
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not exchange.leave():
                task.cancel()
            raise

    def failed(self, error: Exception) -> None:
        log.warning("a stream is not recorded: %s", error)
        if self.on_error is not None:
            self.on_error(error)


class _Exchange:
    """One request and its answer."""

    def __init__(self, record: Record, scope: Scope, receive: Receive, send: Send) -> None:
        self._record, self._scope, self._receive, self._send = record, scope, receive, send
        self._body = bytearray()
        self._request: dict[str, Any] | None = None
        self._pieces: asyncio.Queue[bytes | None] | None = None  # of the answer; None until it is recorded
        self._decided = asyncio.Event()  # it is known whether the answer is recorded
        self._stop = asyncio.Event()  # a user has cancelled the run
        self._gone = False  # the browser has disconnected
        self._whole = False  # the application has sent all of its answer
        self._incoming: asyncio.Task[Message] | None = None
        self._error = ""

    def leave(self) -> bool:
        """The ASGI server ends the request. It reports whether the recording continues."""
        self._gone = True
        return self._pieces is not None

    async def work(self) -> None:
        app = asyncio.ensure_future(self._record.app(self._scope, self._hear, self._say))
        decided = asyncio.create_task(self._decided.wait())
        recording: asyncio.Task[None] | None = None
        try:
            await asyncio.wait([app, decided], return_when=asyncio.FIRST_COMPLETED)
            if self._pieces is not None:
                recording = asyncio.create_task(self._keep(self._pieces))
                await self._stopped(app)
            await asyncio.wait([app])
        finally:
            app.cancel()  # if this task was cancelled
            decided.cancel()
            if self._incoming is not None:
                self._incoming.cancel()
        error = asyncio.CancelledError() if app.cancelled() else app.exception()
        if error is not None:
            self._error = str(error) or type(error).__name__
        if self._pieces is not None:
            self._pieces.put_nowait(None)
        await self._say_abort()
        if recording is not None:
            await recording
        if error is not None and not (app.cancelled() and self._stop.is_set()):
            raise error

    async def _stopped(self, app: asyncio.Future[None]) -> None:
        """Waits for the end of the application. After a cancel it has a moment for it."""
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([app, stop], return_when=asyncio.FIRST_COMPLETED)
            if not app.done():
                await asyncio.wait([app], timeout=self._record.grace)
        finally:
            stop.cancel()
        app.cancel()

    async def _say_abort(self) -> None:
        """Ends the browser's stream if a cancel has ended the application in the middle of it."""
        if not self._stop.is_set() or self._whole or self._gone:
            return
        end = b'data: {"type":"abort"}\n\ndata: [DONE]\n\n'
        with contextlib.suppress(Exception):  # the browser may have disconnected
            await self._send({"type": "http.response.body", "body": end, "more_body": False})

    async def _hear(self) -> Message:
        """The application's receive."""
        if self._stop.is_set():
            return {"type": "http.disconnect"}
        if not self._gone:
            if self._incoming is None:
                self._incoming = asyncio.ensure_future(self._receive())
            stop = asyncio.create_task(self._stop.wait())
            try:
                await asyncio.wait([self._incoming, stop], return_when=asyncio.FIRST_COMPLETED)
            finally:
                stop.cancel()
            if self._incoming.done():
                message, self._incoming = self._incoming.result(), None
                if message["type"] != "http.disconnect":
                    self._read(message)
                    return message
                self._gone = True
        # The browser has disconnected. Only a cancel of the run stops an application that is recorded.
        if self._request is not None:
            await self._decided.wait()
            if self._pieces is not None:
                await self._stop.wait()
        return {"type": "http.disconnect"}

    def _read(self, message: Message) -> None:
        if len(self._body) <= MAX_BODY:
            self._body += message.get("body", b"")
        if message.get("more_body"):
            return
        try:
            value = json.loads(self._body) if len(self._body) <= MAX_BODY else None
        except (ValueError, RecursionError):
            value = None
        self._request = value if isinstance(value, dict) else None
        self._body.clear()

    async def _say(self, message: Message) -> None:
        """The application's send."""
        if message["type"] == "http.response.start":
            if self._is_stream(message):
                self._pieces = asyncio.Queue()
            self._decided.set()
        elif message["type"] == "http.response.body":
            if self._pieces is not None:
                self._pieces.put_nowait(bytes(message.get("body", b"")))
            self._whole = not message.get("more_body", False)
        if self._gone and self._pieces is not None:
            return
        try:
            await self._send(message)
        except Exception:  # servers do not agree on the class of the error after a disconnect
            if self._pieces is None:
                raise
            self._gone = True

    def _is_stream(self, start: Message) -> bool:
        headers = {bytes(k).lower(): bytes(v) for k, v in start.get("headers", ())}
        if self._request is None or start.get("status") != 200 or b"x-vercel-ai-ui-message-stream" not in headers:
            return False
        if headers.get(b"content-encoding", b"identity") != b"identity":
            self._record.failed(TapedeckError("unsupported", "the stream is compressed", "put Record below the middleware that compresses"))
            return False
        return True

    async def _keep(self, pieces: asyncio.Queue[bytes | None]) -> None:
        """Records the answer."""
        try:
            run = await self._begin()
            if run is None:
                return
            async with run:
                recorder, parser = Recorder(run.sync), Parser(MAX_FRAME)
                while (piece := await pieces.get()) is not None:
                    for frame in parser.feed(piece):
                        if frame.event != ":":
                            await run._do(recorder.take, frame.data)
                if self._error:
                    await run.fail(self._error)
                else:
                    await in_thread(recorder.end, self._whole)
        except Cancelled:
            pass
        except Exception as e:
            self._record.failed(e)

    async def _begin(self) -> AsyncRun | None:
        request = self._request or {}
        id = self._record.session(self._scope, request)
        if id is None:
            return None
        session = AsyncSession(self._record.client.session(id))
        task, message_id = last_words(request)
        loop = asyncio.get_running_loop()
        options = {
            **self._record.options, "message_id": message_id, "cancel_task": False,
            "on_cancel": lambda: loop.call_soon_threadsafe(self._stop.set)}
        try:
            await session.info()
        except TapedeckError as e:
            if e.kind != "not_found":
                raise
            title = " ".join((task or "").split())[:80] or None
            try:
                await in_thread(self._record.client.create, id, title=title, owner=self._record.owner)
            except TapedeckError as again:
                if again.kind != "conflict":  # another request has created it
                    raise
        return session.run(task, **options)


def last_words(request: dict[str, Any]) -> tuple[str | None, str | None]:
    """Returns the text and the id of the user's message in a request of ``useChat``; None if the
    request is not the user's, such as the answer to a tool call."""
    messages = request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or last.get("role") != "user":
        return None, None
    id = last.get("id")
    parts = last.get("parts")
    if not isinstance(parts, list):
        parts = [{"type": "text", "text": last.get("content")}]
    texts = [p["text"] for p in parts if isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str)]
    return "\n".join(texts) if texts else None, id if isinstance(id, str) and 0 < len(id) <= 256 else None
