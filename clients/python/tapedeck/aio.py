"""The same client for asyncio.

Each call runs on a thread of its own, not in the pool of the event loop, so that followers do
not take its threads. If the task that waits is cancelled, the connection of the call is closed
at once; whether a request that changes something was carried out is then not known.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from .client import Client
from .errors import Cancelled, TapedeckError
from .producer import Producer
from .run import ALLOW_OR_REJECT, Run
from .session import Session
from .tool import ToolCall
from .transport import Scope, current_scope
from .types import Event, SessionInfo
from .workflow import Workflows

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_AHEAD = 256  # items of an iterator that wait for the task


async def in_thread(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function of the client on a thread. A cancel of the task ends what the thread waits for."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.create_future()
    scope = Scope()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        current_scope.set(scope)
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as e:
            error = e
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            pass  # the loop has ended

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name="tapedeck-call", daemon=True).start()
    try:
        return await future
    finally:
        scope.close()


class _Reader(Generic[T]):
    """Reads an iterator of the client on a thread, ahead of the task."""

    def __init__(self, make: Callable[[], Iterator[T]], close: Callable[[], None] | None) -> None:
        self._make, self._close = make, close
        self._scope = Scope()
        self._space = threading.Semaphore(_AHEAD)
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._items: deque[T] = deque()
        self._end: BaseException | None = None
        threading.Thread(target=self._read, name="tapedeck-iterate", daemon=True).start()

    async def next(self) -> T:
        while not self._items:
            if self._end is not None:
                end, self._end = self._end, StopAsyncIteration()
                raise end
            self._wake.clear()
            await self._wake.wait()
        self._space.release()
        return self._items.popleft()

    def _read(self) -> None:
        current_scope.set(self._scope)
        end: BaseException = StopAsyncIteration()
        try:
            for item in self._make():
                self._space.acquire()
                if self._scope.closed:
                    break
                self._loop.call_soon_threadsafe(self._put, item)
        except BaseException as e:
            end = e
        try:
            self._loop.call_soon_threadsafe(self._put_end, end)
        except RuntimeError:
            pass  # the loop has ended

    def _put(self, item: T) -> None:
        self._items.append(item)
        self._wake.set()

    def _put_end(self, end: BaseException) -> None:
        self._end = end
        self._wake.set()

    def close(self) -> None:
        self._scope.close()
        if self._close is not None:
            self._close()
        self._space.release()  # for a thread that waits


class Iteration(AsyncIterator[T]):
    """An asynchronous iterator. ``async with`` ends it at once when the block is left; a ``break``
    alone ends it when the iterator is collected."""

    def __init__(self, make: Callable[[], Iterator[T]], close: Callable[[], None] | None = None) -> None:
        self._make, self._end = make, close
        self._reader: _Reader[T] | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        if self._closed:
            raise StopAsyncIteration
        if self._reader is None:
            self._reader = _Reader(self._make, self._end)
        return await self._reader.next()

    def close(self) -> None:
        """Ends it. What was read ahead is dropped. No other task may wait in it."""
        self._closed = True
        if self._reader is not None:
            self._reader.close()

    def __del__(self) -> None:
        self.close()  # the thread knows only the reader, so it does not keep this object

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _call(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    """Makes a method of the client one that a task awaits."""

    @functools.wraps(method)
    async def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(method, self.sync, *args, **kwargs)

    return call


class AsyncProducer:
    """A :class:`tapedeck.Producer` for asyncio."""

    def __init__(self, sync: Producer) -> None:
        self.sync = sync

    append = _call(Producer.append)


class AsyncSession:
    """A :class:`tapedeck.Session` for asyncio. ``sync`` is that session."""

    def __init__(self, sync: Session) -> None:
        self.sync = sync
        self.id = sync.id

    info = _call(Session.info)
    rename = _call(Session.rename)
    close = _call(Session.close)
    delete = _call(Session.delete)
    append = _call(Session.append)
    task = _call(Session.task)
    inputs = _call(Session.inputs)
    withdraw = _call(Session.withdraw)
    move = _call(Session.move)
    take = _call(Session.take)
    cancel = _call(Session.cancel)
    resume = _call(Session.resume)
    permissions = _call(Session.permissions)
    answer = _call(Session.answer)
    workflow = _call(Session.workflow)
    message = _call(Session.message)
    rewind = _call(Session.rewind)
    undo = _call(Session.undo)
    overwrite = _call(Session.overwrite)
    clear = _call(Session.clear)
    erase = _call(Session.erase)
    snapshot = _call(Session.snapshot)
    context = _call(Session.context)
    summary = _call(Session.summary)
    view = _call(Session.view)
    export = _call(Session.export)

    async def fork(self, at: int | None = None, **options: Any) -> AsyncSession:
        """Forks, as :meth:`tapedeck.Session.fork`."""
        return AsyncSession(await in_thread(self.sync.fork, at, **options))

    async def copy(self, at: int | None = None, **options: Any) -> AsyncSession:
        """Copies, as :meth:`tapedeck.Session.copy`."""
        return AsyncSession(await in_thread(self.sync.copy, at, **options))

    def producer(self, id: str | None = None, *, epoch: int = 0, give_up: float = 120.0) -> AsyncProducer:
        """Returns a producer, as :meth:`tapedeck.Session.producer`."""
        return AsyncProducer(self.sync.producer(id, epoch=epoch, give_up=give_up))

    def events(self, start: int = 0, **options: Any) -> Iteration[Event]:
        """Iterates over the events that exist, as :meth:`tapedeck.Session.events`."""
        return Iteration(lambda: self.sync.events(start, **options))

    def follow(self, start: int = 0, **options: Any) -> Iteration[Event]:
        """Follows the session, as :meth:`tapedeck.Session.follow`."""
        follower = self.sync.follow(start, **options)
        return Iteration(lambda: follower, follower.close)

    def run(self, task: str | None = None, *, cancel_task: bool = True, **options: Any) -> AsyncRun:
        """Records a run of an agent in this program, as :meth:`tapedeck.Session.run`."""
        return AsyncRun(self.sync, task, cancel_task, options)


class AsyncWorkflows:
    """The :class:`tapedeck.Workflows` of a server for asyncio."""

    def __init__(self, sync: Workflows) -> None:
        self.sync = sync

    list = _call(Workflows.list)
    get = _call(Workflows.get)
    put = _call(Workflows.put)
    delete = _call(Workflows.delete)
    check = _call(Workflows.check)
    run = _call(Workflows.run)


class AsyncClient:
    """A :class:`tapedeck.Client` for asyncio, with the same options. ``sync`` is that client."""

    def __init__(self, url: str = "http://127.0.0.1:4747", **options: Any) -> None:
        self.sync = Client(url, **options)
        self.workflows = AsyncWorkflows(self.sync.workflows)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections."""
        self.sync.close()

    run = _call(Client.run)
    agents = _call(Client.agents)
    stats = _call(Client.stats)
    search = _call(Client.search)
    import_file = _call(Client.import_file)

    def session(self, id: str) -> AsyncSession:
        """Returns a handle for a session. It sends nothing."""
        return AsyncSession(self.sync.session(id))

    async def create(self, id: str | None = None, **options: Any) -> AsyncSession:
        """Creates a session, as :meth:`tapedeck.Client.create`."""
        return AsyncSession(await in_thread(self.sync.create, id, **options))

    def sessions(self, **options: Any) -> Iteration[SessionInfo]:
        """Iterates over the sessions, as :meth:`tapedeck.Client.sessions`."""
        return Iteration(lambda: self.sync.sessions(**options))


class AsyncRun:
    """A :class:`tapedeck.Run` for asyncio, as an asynchronous context manager.

    If a user cancels the run on any screen, the task in the block is cancelled, also in the
    middle of a request to a model, and the block raises :class:`tapedeck.Cancelled`. With
    ``cancel_task=False`` only the next call raises it. The other parameters are those of
    :meth:`tapedeck.Session.run`.
    """

    def __init__(self, session: Session, task: str | None, cancel_task: bool, options: dict[str, Any]) -> None:
        self._user_callback = options.pop("on_cancel", None)
        self.sync: Run = session.run(task, on_cancel=self._on_cancel, **options)
        self._cancel_task = cancel_task
        self._task: asyncio.Task[Any] | None = None
        self._interrupted = False

    @property
    def invocation(self) -> str:
        return self.sync.invocation

    @property
    def status(self) -> str:
        return self.sync.status

    @property
    def cancelled(self) -> bool:
        return self.sync.cancelled

    def _on_cancel(self) -> None:
        if self._cancel_task:
            try:
                self._loop.call_soon_threadsafe(self._interrupt)
            except RuntimeError:
                pass  # the loop has ended
        if self._user_callback is not None:
            self._user_callback()

    def _interrupt(self) -> None:
        if self._task is not None and not self._interrupted:
            self._interrupted = True
            self._task.cancel()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        self._cancelling = task.cancelling()
        await in_thread(self.sync.__enter__)
        self._task = task
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        task, self._task = self._task, None
        if self._interrupted and task is not None and task.uncancel() <= self._cancelling and isinstance(error, asyncio.CancelledError):
            # The cancel was ours, and the caller gets its reason.
            await self._leave(Cancelled, Cancelled(self.invocation), None)
            raise Cancelled(self.invocation) from error
        await self._leave(kind, error, trace)

    async def _leave(self, *error: Any) -> None:
        """Records the end also if the task is cancelled meanwhile: a run has a terminal event."""
        leaving = asyncio.ensure_future(in_thread(self.sync.__exit__, *error))
        try:
            await asyncio.shield(leaving)
        except asyncio.CancelledError:
            if not leaving.cancelled():
                await asyncio.wait([leaving])
                leaving.exception()
            raise

    async def _do(self, function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Calls what usually only queues an event. It needs a thread only if it may wait."""
        if self.sync.full() or not self.sync.lock.acquire(blocking=False):
            return await in_thread(function, *args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            self.sync.lock.release()

    async def text(self, delta: str) -> None:
        """As :meth:`tapedeck.Run.text`."""
        await self._do(self.sync.text, delta)

    async def thought(self, delta: str) -> None:
        """As :meth:`tapedeck.Run.thought`."""
        await self._do(self.sync.thought, delta)

    async def end_message(self) -> None:
        """As :meth:`tapedeck.Run.end_message`."""
        await self._do(self.sync.end_message)

    async def next_turn(self) -> None:
        """As :meth:`tapedeck.Run.next_turn`."""
        await self._do(self.sync.next_turn)

    async def attempt(self, reason: str = "") -> None:
        """As :meth:`tapedeck.Run.attempt`."""
        await self._do(self.sync.attempt, reason)

    async def custom(self, name: str, value: Any) -> None:
        """As :meth:`tapedeck.Run.custom`."""
        await self._do(self.sync.custom, name, value)

    def tool(self, name: str, arguments: Any = None, *, id: str | None = None) -> AsyncToolCall:
        """As :meth:`tapedeck.Run.tool`, as an asynchronous context manager."""
        return AsyncToolCall(self, self.sync.tool(name, arguments, id=id))

    async def ask(
        self, message: str, options: Iterable[tuple[str, str, str]] = ALLOW_OR_REJECT, *, tool_call: str | None = None,
        action: Mapping[str, Any] | None = None, timeout: float | None = None,
    ) -> str | None:
        """As :meth:`tapedeck.Run.ask`."""
        return await in_thread(self.sync.ask, message, options, tool_call=tool_call, action=action, timeout=timeout)

    plan = _call(Run.plan)
    usage = _call(Run.usage)
    event = _call(Run.event)
    flush = _call(Run.flush)
    take = _call(Run.take)
    finish = _call(Run.finish)
    fail = _call(Run.fail)
    cancel = _call(Run.cancel)


class AsyncToolCall:
    """A :class:`tapedeck.ToolCall` for asyncio."""

    def __init__(self, run: AsyncRun, sync: ToolCall) -> None:
        self.sync = sync
        self.id = sync.id
        self._run = run

    async def __aenter__(self) -> Self:
        await self._run._do(self.sync.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._run._do(self.sync.__exit__, kind, error, trace)

    async def result(self, value: Any) -> None:
        """As :meth:`tapedeck.ToolCall.result`."""
        await self._run._do(self.sync.result, value)

    async def error(self, message: str) -> None:
        """As :meth:`tapedeck.ToolCall.error`."""
        await self._run._do(self.sync.error, message)


__all__ = ["AsyncClient", "AsyncProducer", "AsyncRun", "AsyncSession", "AsyncToolCall", "AsyncWorkflows", "Cancelled", "TapedeckError"]
