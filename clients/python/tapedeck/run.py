"""Recording a run of an agent in this program."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .errors import Cancelled, TapedeckError
from .outbox import Outbox
from .producer import Producer
from .tool import ToolCall, clean, text_of
from .transport import encode
from .types import Event, Taken

if TYPE_CHECKING:
    from .session import Session

log = logging.getLogger("tapedeck")

ALLOW_OR_REJECT = (("allow", "Allow", "allow_once"), ("reject", "Reject", "reject_once"))

_TERMINAL = ("RUN_FINISHED", "RUN_ERROR")
_DELTAS = {
    "text": ("TEXT_MESSAGE_CONTENT", "messageId"), "thought": ("REASONING_MESSAGE_CONTENT", "messageId"),
    "tool": ("TOOL_CALL_ARGS", "toolCallId"),
}


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(12)


class Run:
    """A run of an agent, from :meth:`tapedeck.Session.run`. It is a context manager::

        with session.run("Plan a trip", agent="planner") as run:
            run.text("Let me look.")
            with run.tool("search", {"q": "Bern"}) as call:
                call.result(search("Bern"))

    The run begins when the block is entered: the task is durable then. What the agent says is
    sent in the background, in batches; leaving the block waits until everything is durable. The
    run ends with the block, with exactly one terminal event: finished, or failed with the text
    of the exception, or cancelled if the exception is KeyboardInterrupt, SystemExit or
    asyncio.CancelledError. The exception continues to the caller.

    If a user cancels the run on any screen, ``cancelled`` becomes true, ``on_cancel`` is called
    on another thread, and the next call raises :class:`tapedeck.Cancelled`.

    If this program dies, the server ends the run as interrupted after ``lease`` seconds, at least
    one. While the run is silent, a thread renews the lease; it leaves nothing in the log. A server
    that is restarted is waited for, ``give_up`` seconds long; no event is lost or stored twice.

    The methods may be called by several threads. ``status`` is ``running``, ``complete``,
    ``failed``, ``cancelled`` or ``interrupted``. ``offset`` is that of the first event, -1 before.
    """

    def __init__(
        self, session: Session, task: str | None, *, agent: str | None, actor: str | None, thread: str | None,
        invocation: str | None, message_id: str | None, model: str | None, on_cancel: Callable[[], None] | None,
        lease: float, give_up: float,
    ) -> None:
        self.session = session
        self.invocation = invocation or new_id("inv_")
        self.status = "running"
        self.offset = -1
        self._task, self._message_id = task, message_id or new_id("msg_")
        self._agent, self._model, self._user, self._thread = agent, model, actor, thread
        self._on_cancel, self._lease = on_cancel, lease
        self._producer = Producer(session, give_up=give_up)
        self._cancelled = threading.Event()
        self._over = threading.Event()
        self.lock = threading.RLock()
        self._turn = 0
        self._open: dict[tuple[str, str], str] = {}  # kind and key to the id of an open message
        self._halves: dict[tuple[str, str], str] = {}  # the first half of a character whose second half follows
        self._message = ""  # the newest text message of the turn
        self._answers: dict[str, str | None] = {}
        self._answered = threading.Condition()
        self._ending = False
        self._box: Outbox | None = None

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled by somebody else."""
        return self._cancelled.is_set()

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Waits for a cancel and reports whether there was one."""
        return self._cancelled.wait(timeout)

    # The beginning.

    def __enter__(self) -> Self:
        if self.offset >= 0:
            raise TapedeckError("invalid", "a run begins once", "call session.run again")
        first: list[dict[str, Any]] = []
        if self._task is not None:
            message = {"id": self._message_id, "role": "user", "content": clean(self._task)}
            first.append(self._event("message.added", {"message": message}, self._user or ""))
        about: dict[str, Any] = {k: v for k, v in (("agent", self._agent), ("model", self._model)) if v}
        about["leaseMs"] = round(self._lease * 1000)
        data: dict[str, Any] = {"threadId": self._thread or "main", "runId": self.invocation, "metadata": {"tapedeck": about}}
        first.append(self._event("RUN_STARTED", data))
        done = self._producer.append(*first)
        self.offset = done.get("first", done["head"] - len(first))
        self._box = Outbox(self._producer, self._explain, self._failed)
        self._follower = self.session.follow(
            self.offset, until="terminal", invocation=self.invocation, type=[*_TERMINAL, "permission.answered"], give_up=None)
        threading.Thread(target=self._watch, name="tapedeck-watch", daemon=True).start()
        threading.Thread(target=self._renew, name="tapedeck-renew", daemon=True).start()
        return self

    def _event(self, type: str, data: Mapping[str, Any], actor: str | None = None) -> dict[str, Any]:
        if actor is None:
            actor = f"agent:{self._agent}" if self._agent else ""
        return Event(
            type, dict(data), thread=self._thread or "", invocation=self.invocation, turn=self._turn, actor=actor).to_dict()

    # What the agent does.

    def text(self, delta: str) -> None:
        """Says a piece of text. It continues the open message, or opens one."""
        self.stream("text", "", delta)

    def thought(self, delta: str) -> None:
        """Thinks a piece of text."""
        self.stream("thought", "", delta)

    def end_message(self) -> None:
        """Ends the open message. The next text opens another one."""
        with self.lock:
            self._check()
            self._end_messages()

    def stream(self, kind: str, key: str, delta: str) -> None:
        """Adds to the message of that kind ("text" or "thought") and key, and opens it first. A
        program with several open messages names each with a key of its own."""
        if not isinstance(delta, str):
            raise TapedeckError("invalid", f"a text is a string, not {type(delta).__name__}")
        with self.lock:
            self._check()
            if not key:
                self._end_messages(except_for=(kind, key))
            id = self._open.get((kind, key)) or self._begin(kind, key)
            self._grow(kind, key, id, delta)

    def _grow(self, kind: str, key: str, id: str, delta: str) -> None:
        """Adds to a text. A program that cuts texts by UTF-16 units divides a character between
        two pieces: the first half waits for the second."""
        delta = self._halves.pop((kind, key), "") + delta
        if delta and "\ud800" <= delta[-1] <= "\udbff":
            self._halves[kind, key], delta = delta[-1], delta[:-1]
        self._put_piece(kind, id, delta)

    def _put_piece(self, kind: str, id: str, delta: str) -> None:
        typ, member = _DELTAS[kind]
        if delta:
            self._put_delta((typ, id), self._event(typ, {member: id}), clean(delta))

    def _begin(self, kind: str, key: str) -> str:
        id = new_id("msg_")
        self._open[kind, key] = id
        if kind == "text":
            self._message = id
            self._put("TEXT_MESSAGE_START", {"messageId": id, "role": "assistant"})
        else:
            self._put("REASONING_START", {"messageId": id})
            self._put("REASONING_MESSAGE_START", {"messageId": id, "role": "reasoning"})
        return id

    def end_stream(self, kind: str, key: str) -> None:
        """Ends the message of that kind and key, if it is open."""
        with self.lock:
            self._check()
            self._end_stream(kind, key)

    def _end_stream(self, kind: str, key: str) -> None:
        id = self._open.pop((kind, key), None)
        if id is None:
            return
        self._put_piece(kind, id, self._halves.pop((kind, key), ""))
        if kind == "text":
            self._put("TEXT_MESSAGE_END", {"messageId": id})
        elif kind == "thought":
            self._put("REASONING_MESSAGE_END", {"messageId": id})
            self._put("REASONING_END", {"messageId": id})
        else:
            self._put("TOOL_CALL_END", {"toolCallId": id})

    def _end_messages(self, except_for: tuple[str, str] | None = None) -> None:
        for at in [k for k in self._open if k[0] != "tool" and not k[1] and k != except_for]:
            self._end_stream(*at)

    def next_turn(self) -> None:
        """Begins the next model call: later events have its number, from 1. An agent that does not
        call it records no turns."""
        with self.lock:
            self._check()
            self._end_messages()
            self._turn += 1
            self._message = ""

    def attempt(self, reason: str = "") -> None:
        """Repeats the step: what follows replaces what the agent has said and called since the newest
        result of a tool, or since the beginning of the run. The log keeps both."""
        with self.lock:
            self._check()
            self._open.clear()
            self._halves.clear()
            self._message = ""
            self._put("attempt.superseded", {"reason": clean(reason)} if reason else {})

    def tool(self, name: str, arguments: Any = None, *, id: str | None = None) -> ToolCall:
        """Calls a tool: a context manager that ends with the result. ``arguments`` are any JSON."""
        return ToolCall(self, name, arguments, id or new_id("call_"))

    def begin_tool(self, id: str, name: str) -> None:
        """Begins a tool call whose arguments follow in pieces. :meth:`tool` is the simple way."""
        with self.lock:
            self._check()
            self._end_messages()
            data = {"toolCallId": id, "toolCallName": name}
            if self._message:
                data["parentMessageId"] = self._message
            self._put("TOOL_CALL_START", data)
            self._open["tool", id] = id

    def tool_arguments(self, id: str, delta: str) -> None:
        """Adds a piece of the arguments of a tool call."""
        with self.lock:
            self._check()
            self._grow("tool", id, id, delta)

    def tool_result(self, id: str, result: Any, *, failed: bool = False, duration_ms: int | None = None) -> None:
        """Records the result of a tool call; anything but a string is recorded as JSON."""
        with self.lock:
            self._check()
            self._end_stream("tool", id)
            content = clean(result) if isinstance(result, str) else "" if result is None else text_of(result)
            data: dict[str, Any] = {"messageId": new_id("msg_"), "toolCallId": id, "content": content, "role": "tool"}
            ours: dict[str, Any] = {"error": True} if failed else {}
            if duration_ms is not None:
                ours["durationMs"] = duration_ms
            if ours:
                data["metadata"] = {"tapedeck": ours}
            self._put("TOOL_CALL_RESULT", data)

    def custom(self, name: str, value: Any) -> None:
        """Records a ``CUSTOM`` event; the name begins with that of a vendor, such as ``acme.progress``."""
        with self.lock:
            self._check()
            self._put("CUSTOM", {"name": clean(name), "value": value})

    def plan(self, entries: Iterable[tuple[str, str]]) -> None:
        """Replaces the plan: pairs of a step and its status (``pending``, ``in_progress``, ``completed``)."""
        self.event("plan.updated", {"entries": [{"content": c, "status": s} for c, s in entries]})

    def usage(
        self, *, model: str | None = None, provider: str | None = None, input_tokens: int | None = None,
        output_tokens: int | None = None, cost_usd: float | None = None,
    ) -> None:
        """Records what one model call used."""
        members = {
            "model": model, "provider": provider, "inputTokens": input_tokens, "outputTokens": output_tokens, "costUsd": cost_usd}
        self.event("usage.reported", {k: v for k, v in members.items() if v is not None})

    def event(self, type: str, data: Mapping[str, Any]) -> None:
        """Records any other event of docs/events.md, or one of your own type, such as ``acme.note``.
        When it returns, the event is durable. An event that the server refuses is an error here,
        and the run continues."""
        if type in _TERMINAL:
            raise TapedeckError("invalid", f"{type} ends the run", "leave the block, or call finish or fail")
        with self.lock:
            self._check()
            self._outbox().flush()
            self._producer.append(self._event(type, data))

    def ask(
        self, message: str, options: Iterable[tuple[str, str, str]] = ALLOW_OR_REJECT, *, tool_call: str | None = None,
        action: Mapping[str, Any] | None = None, timeout: float | None = None,
    ) -> str | None:
        """Asks a user, and waits for the answer from any screen: the id of the chosen option.

        An option is an id, a name and a kind (``allow_once``, ``allow_always``, ``reject_once``,
        ``reject_always``). It returns None after ``timeout`` seconds; the question stays pending
        until the run ends. A cancel raises :class:`tapedeck.Cancelled`.
        """
        id = new_id("perm_")
        data = {"id": id, "message": clean(message), "options": [{"id": i, "name": n, "kind": k} for i, n, k in options]}
        if tool_call:
            data["toolCallId"] = tool_call
        if action:
            data["action"] = dict(action)
        self.event("permission.requested", data)
        with self._answered:
            self._answered.wait_for(lambda: id in self._answers or self._ending or self._outbox().error is not None, timeout)
        if id not in self._answers:
            self._check()
        return self._answers.get(id)

    def flush(self) -> None:
        """Waits until everything so far is durable."""
        self._outbox().flush()

    def take(self, input: str) -> Taken:
        """Takes a task that waits for this program into the run, and returns its message. The open
        message ends, and the log has all that the agent has said before it."""
        self.end_message()
        self.flush()
        return self.session.take(input, self.invocation)

    # The end.

    def finish(self, result: Any = None) -> None:
        """Ends the run as complete, with a result of any JSON. Leaving the block does it without a result."""
        data: dict[str, Any] = {"threadId": self._thread or "main", "runId": self.invocation}
        if result is not None:
            data["result"] = result
        self._end("RUN_FINISHED", data, "complete")

    def fail(self, message: str, *, code: str | None = None) -> None:
        """Ends the run as failed."""
        data = {"message": clean(message) or "the agent failed"}
        if code:
            data["code"] = code
        self._end("RUN_ERROR", data, "failed")

    def cancel(self) -> None:
        """Ends the run as cancelled. It can be resumed."""
        self._end("RUN_FINISHED", {
            "threadId": self._thread or "main", "runId": self.invocation, "outcome": {"type": "cancelled"},
            "metadata": {"tapedeck": {"resumable": True}}}, "cancelled")

    def _end(self, type: str, data: dict[str, Any], status: str) -> None:
        encode(data)  # an error here leaves the run open
        with self.lock:
            self._check()
            self._ending = True  # before the event, because the follower hears it, too
            for at in list(self._open):
                self._end_stream(*at)
            self._put(type, data)
        try:
            self._outbox().flush()
            self.status = status
        finally:
            self._release()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._ending or self.status != "running":
            self._release()
            if error is None:
                self._check_ended()
            return
        if error is None:
            self.finish()
            return
        try:
            self._end_with(error)
        except TapedeckError as e:
            if not isinstance(e, Cancelled):
                error.add_note(f"tapedeck: the end of run {self.invocation} was not recorded: {e}")

    def _end_with(self, error: BaseException) -> None:
        if isinstance(error, Exception):
            self.fail(str(error) or type(error).__name__, code=type(error).__name__)
        else:
            self.cancel()

    def _release(self) -> None:
        """Ends the threads."""
        self._over.set()
        self._follower.close()
        self._outbox().close()
        with self._answered:
            self._answered.notify_all()

    # What others do.

    def _watch(self) -> None:
        try:
            for event in self._follower:
                self._heard(event)
        except TapedeckError as e:
            # An append meets the same error. Without one, only a cancel is heard later.
            log.warning("run %s cannot hear its session: %s", self.invocation, e)

    def _renew(self) -> None:
        every = self._lease / 3
        while not self._over.wait(every):
            if self._outbox().quiet_for() < every:
                continue
            try:
                every = min(every, self.session.renew(self.invocation, timeout=every)["lease_ms"] / 3000)
            except TapedeckError as e:
                # Everything but the end of the run may pass: the next time tries again.
                if e.kind == "conflict" and not self._ending:
                    self._outbox().fail(self._explain(e))
                    return

    def _heard(self, event: Event) -> None:
        if event.type == "permission.answered":
            with self._answered:
                self._answers[str(event.data.get("id"))] = event.data.get("option")
                self._answered.notify_all()
        elif event.type in _TERMINAL and not self._ending:
            # While it ends, the answer to the append says who was first.
            self._outbox().fail(self._ended_by(event))

    def _ended_by(self, event: Event) -> TapedeckError:
        """Records that somebody else has ended the run, and returns the error of later calls."""
        outcome = event.data.get("outcome")
        if event.type == "RUN_FINISHED" and isinstance(outcome, dict) and outcome.get("type") == "cancelled":
            self.status = "cancelled"
            return Cancelled(self.invocation)
        interrupted = event.data.get("code") in ("lease_expired", "interrupted_by_restart")
        self.status = "interrupted" if interrupted else "failed" if event.type == "RUN_ERROR" else "complete"
        why = event.data.get("message") or "as complete"
        return TapedeckError("conflict", f"run {self.invocation} was ended by somebody else: {why}")

    def _explain(self, error: TapedeckError) -> TapedeckError:
        """Returns why an append was refused: usually the run has ended."""
        if error.kind != "conflict":
            self.status = "interrupted"
            return error
        try:
            for event in self.session.events(self.offset, invocation=self.invocation, type=_TERMINAL):
                if event.type in _TERMINAL:  # events of the session pass every filter
                    return self._ended_by(event)
        except TapedeckError as e:
            error.add_note(f"tapedeck: why it was refused cannot be read: {e}")
        self.status = "interrupted"
        return error

    def _failed(self, error: TapedeckError) -> None:
        # It must not wait for the lock: a caller that holds it may wait for the outbox.
        if isinstance(error, Cancelled):
            self._cancelled.set()
        with self._answered:
            self._answered.notify_all()
        if isinstance(error, Cancelled) and self._on_cancel is not None:
            try:
                self._on_cancel()
            except Exception:
                log.exception("on_cancel of run %s failed", self.invocation)

    def _check_ended(self) -> None:
        if (error := self._outbox().error) is not None:
            raise error.with_traceback(None)

    def _check(self) -> None:
        self._check_ended()
        if self._ending:
            raise TapedeckError("invalid", f"run {self.invocation} has ended")

    def _outbox(self) -> Outbox:
        if self._box is None:
            raise TapedeckError("invalid", "the run has not begun", "use it in a with statement")
        return self._box

    def full(self) -> bool:
        """Whether the next call may wait because the server is slow or away."""
        return self._outbox().full()

    def _put(self, type: str, data: Mapping[str, Any]) -> None:
        self._outbox().put(self._event(type, data))

    def _put_delta(self, key: tuple[str, str], event: dict[str, Any], delta: str) -> None:
        self._outbox().put_delta(key, event, delta)
