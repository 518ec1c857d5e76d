"""One session: its verbs, its events, its views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import TapedeckError
from .follow import Follower
from .transport import Transport, encode, path_of
from .types import (
    Amount, Answered, Appended, CancelledRun, Context, Erased, Event, Input, MessageSent, Permission, RenewedRun, Rewound, SessionInfo, Taken,
    Snapshot, Started, Summary, When, Workflow, event_of,
)

if TYPE_CHECKING:
    from .producer import Producer
    from .run import Run

NewEvent = Event | Mapping[str, Any]


class Session:
    """A handle for one session. It may be used by several threads."""

    def __init__(self, transport: Transport, id: str) -> None:
        self.id = id
        self.transport = transport
        self._path(())

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def _path(self, rest: tuple[str, ...]) -> str:
        return path_of(self.id, *rest)

    def _get(self, *rest: str, **query: Any) -> Any:
        return self.transport.call("GET", self._path(rest), query=query)

    def _post(self, *rest: str, timeout: float | None = None, **members: Any) -> Any:
        body = {k: v for k, v in members.items() if v is not None}
        return self.transport.call("POST", self._path(rest), body, timeout=timeout)

    # The session itself.

    def info(self) -> SessionInfo:
        """Returns its catalogue entry."""
        return self._get()

    def rename(
        self, *, title: str | None = None, labels: dict[str, str] | None = None, budget: Amount | None = None,
        actor: str | None = None,
    ) -> SessionInfo:
        """Changes the title, replaces all labels, or sets the budget; an empty budget is no limit."""
        body = {k: v for k, v in (("title", title), ("labels", labels), ("budget", budget), ("actor", actor)) if v is not None}
        return self.transport.call("PATCH", self._path(()), body)

    def close(self, *, actor: str | None = None) -> SessionInfo:
        """Closes it for ever: it accepts no more events, and its streams end."""
        return self._post("close", actor=actor)

    def delete(self) -> None:
        """Cancels its runs and deletes it with its events."""
        self.transport.call("DELETE", self._path(()))

    # Events.

    def append(
        self, *events: NewEvent, expect: int | None = None, producer: tuple[str, int, int] | None = None,
    ) -> Appended:
        """Appends events: all of them or none. When it returns, they are durable.

        With ``expect`` they are appended only if this is the head; otherwise it is a
        ``conflict`` with the ``head``. ``producer`` is an id, an epoch and a sequence number;
        :meth:`producer` numbers appends by itself and repeats them safely.
        """
        return self.append_encoded(encode_events(events), expect=expect, producer=producer)

    def append_encoded(
        self, body: bytes, *, expect: int | None = None, producer: tuple[str, int, int] | None = None,
    ) -> Appended:
        """Appends a JSON array of events."""
        headers = {}
        if expect is not None:
            headers["If-Match"] = str(expect)
        if producer is not None:
            headers.update({"Producer-Id": producer[0], "Producer-Epoch": str(producer[1]), "Producer-Seq": str(producer[2])})
        return self.transport.call_with(
            "POST", self._path(("events",)), body, "application/json", headers=headers, repeatable=producer is not None)

    def producer(self, id: str | None = None, *, epoch: int = 0, give_up: float = 120.0) -> Producer:
        """Returns a producer, which stores each append exactly once, also through lost
        connections and restarts of the server. See :class:`tapedeck.Producer`."""
        from .producer import Producer

        return Producer(self, id, epoch=epoch, give_up=give_up)

    def events(
        self, start: int = 0, *, reverse: bool = False, channel: str | Iterable[str] | None = None,
        thread: str | Iterable[str] | None = None, type: str | Iterable[str] | None = None,
        invocation: str | Iterable[str] | None = None, effective: bool = False, page: int = 1000,
    ) -> Iterator[Event]:
        """Yields the events that exist, from the offset ``start`` on, and asks for one page at a
        time. With ``reverse`` it yields those below ``start`` (0: the head), newest first."""
        query = _filter(channel, thread, type, invocation, effective)
        query.update(limit=page, reverse=reverse or None)
        query["from"] = last = start or (None if reverse else 0)
        while True:
            answer = self._get("events", **query)
            for value in answer.get("events") or []:
                yield event_of(value)
            at, head = answer.get("next"), answer.get("head")
            if not isinstance(at, int) or at == last or (at == 0 if reverse else at >= (head or 0)):
                return
            last = at
            query["from"] = answer.get("cursor") or at  # a session that is created again meanwhile answers 410

    def follow(
        self, start: int = 0, *, until: str | None = None, invocation: str | Iterable[str] | None = None,
        channel: str | Iterable[str] | None = None, thread: str | Iterable[str] | None = None,
        type: str | Iterable[str] | None = None, effective: bool = False, give_up: float | None = 300.0,
        on_reconnect: Callable[[int, TapedeckError], None] | None = None,
    ) -> Follower:
        """Follows the events from the offset ``start`` on, each exactly once. See :class:`tapedeck.Follower`.

        With ``until="terminal"`` it ends after the terminal event of ``invocation``, or without
        it after the next one. ``give_up`` is how many seconds the server may be away; None
        means for ever. ``on_reconnect`` gets the number of the attempt and the error before each wait.
        """
        if until not in (None, "none", "terminal"):
            raise TapedeckError("invalid", f"until is {until!r}", "it is \"terminal\" or None")
        if start < 0:
            raise TapedeckError("invalid", f"{start} is not an offset")
        query = _filter(channel, thread, type, invocation, effective)
        query["until"] = until
        return Follower(self.transport, self._path(("stream",)), query, start, give_up, on_reconnect)

    # Runs of agents of the server.

    def task(
        self, task: str, *, agent: str | None = None, thread: str | None = None, config: dict[str, Any] | None = None,
        message_id: str | None = None, actor: str | None = None, when: When | None = None,
        budget: Amount | None = None, overwrite: dict[str, Any] | None = None,
    ) -> Started:
        """Starts the next task with an agent of the server. To record an agent of your own, use
        :meth:`run`. A task with a ``message_id`` can be sent again safely. ``when`` says what to
        do while a run is open in the thread: ``"now"`` (the task is refused), ``"queue"``,
        ``"steer"`` or ``"interrupt"``. A task that waits has the status ``"waiting"``. ``budget``
        says what the run may use before it asks people; what it leaves out is as for the agent.
        ``overwrite`` says which events the task replaces, such as ``{"from_offset": 3}``: they are
        reverted with the beginning of the run, or not at all."""
        return self._post(
            "task", task=task, agent=agent, thread=thread, config=config, message_id=message_id, actor=actor, when=when,
            budget=budget, overwrite=overwrite)

    def inputs(self, thread: str | None = None) -> list[Input]:
        """Returns the tasks that wait, in the order in which they will run, and the newest of those that have ended."""
        return self._get("inputs", thread=thread).get("inputs") or []

    def withdraw(self, input: str, *, actor: str | None = None) -> Input:
        """Withdraws a task that waits. It is a conflict if the task does not wait any more."""
        return self.transport.call("DELETE", self._path(("inputs", input)), query={"actor": actor})

    def move(self, input: str, before: str | None = None, *, actor: str | None = None) -> Input:
        """Puts a task that waits before another one, or at the end."""
        body = {k: v for k, v in (("before", before), ("actor", actor)) if v is not None}
        return self.transport.call("PATCH", self._path(("inputs", input)), body)

    def take(self, input: str, invocation: str) -> Taken:
        """Gives a task that waits for an outside program to an open run of that program, and returns its message."""
        return self._post("inputs", input, "take", invocation=invocation)

    def cancel(self, invocation: str | None = None, *, all: bool = False) -> CancelledRun:
        """Cancels a run, or the only open run. It returns when the run has ended. The next task that
        waits in the thread is run; with ``all``, the tasks that wait are withdrawn."""
        return self._post("cancel", invocation=invocation, all=all or None)

    def renew(self, invocation: str, *, timeout: float | None = None) -> RenewedRun:
        """Says that the program which writes a run is alive. :class:`tapedeck.Run` does it by itself."""
        return self._post("renew", invocation=invocation, timeout=timeout)

    def resume(
        self, task: str | None = None, *, agent: str | None = None, thread: str | None = None,
        config: dict[str, Any] | None = None, actor: str | None = None, budget: Amount | None = None,
    ) -> Started:
        """Resumes the newest run of a thread that was cancelled, interrupted or failed."""
        return self._post("resume", task=task, agent=agent, thread=thread, config=config, actor=actor, budget=budget)

    def permissions(self) -> list[Permission]:
        """Returns the questions to people that nobody has answered yet, the oldest first."""
        asked = self.snapshot(limit=1).get("permissions") or []
        return [p for p in asked if p["status"] == "open"]

    def answer(
        self, permission: str, option: str, *, input: dict[str, Any] | None = None, offset: int | None = None,
        actor: str | None = None,
    ) -> Answered:
        """Answers a permission that an agent asked for. ``input`` has the values of the fields of its
        form; a user task of a workflow has the option ``"submit"``. ``offset`` is that of the
        question that the user saw."""
        return self._post("permissions", permission, option=option, input=input, offset=offset, actor=actor)

    # The workflow that runs in the session.

    def workflow(self, *, at: int | None = None, thread: str | None = None) -> Workflow | None:
        """Returns the state of the workflow: its elements, what they wait for, its variables. None
        if there is none. ``at`` asks for the state before that offset."""
        return self._get("workflow", at=at, thread=thread).get("workflow")

    def message(
        self, name: str, *, correlation: str | None = None, variables: dict[str, Any] | None = None,
        thread: str | None = None, actor: str | None = None,
    ) -> MessageSent:
        """Sends a message to the workflow. It stays in the session until an element waits for it."""
        return self._post(
            "messages", name=name, correlation=correlation, variables=variables, thread=thread, actor=actor)

    # Runs of an agent in this program.

    def run(
        self, task: str | None = None, *, agent: str | None = None, actor: str | None = None, thread: str | None = None,
        invocation: str | None = None, message_id: str | None = None, model: str | None = None,
        on_cancel: Callable[[], None] | None = None, lease: float = 15.0, give_up: float = 120.0,
    ) -> Run:
        """Records a run of an agent in this program, as a context manager. See :class:`tapedeck.Run`."""
        from .run import Run

        return Run(
            self, task, agent=agent, actor=actor, thread=thread, invocation=invocation, message_id=message_id,
            model=model, on_cancel=on_cancel, lease=lease, give_up=give_up)

    # Going back.

    def rewind(
        self, to_offset: int | None = None, *, before_invocation: str | None = None, thread: str | None = None,
        force: bool = False, if_idle: bool = False, actor: str | None = None,
    ) -> Rewound:
        """Takes the session back to what it was before an event, or before an invocation."""
        return self._post(
            "rewind", to_offset=to_offset, before_invocation_id=before_invocation, thread=thread, force=force or None, if_idle=if_idle or None, actor=actor)

    def undo(self, marker: str | None = None, *, actor: str | None = None) -> Rewound:
        """Undoes a rewind, a clear, an overwrite or an undo; without a marker the newest one."""
        return self._post("undo", marker=marker, actor=actor)

    def overwrite(self, from_offset: int, *, thread: str | None = None, force: bool = False, actor: str | None = None) -> Rewound:
        """Takes the session back to what it was before an event; the next events replace the reverted ones."""
        return self._post("overwrite", from_offset=from_offset, thread=thread, force=force or None, actor=actor)

    def clear(self, *, thread: str | None = None, actor: str | None = None) -> Rewound:
        """Reverts all events. It deletes nothing, and can be undone."""
        return self._post("clear", thread=thread, actor=actor)

    def fork(
        self, at: int | None = None, *, id: str | None = None, title: str | None = None, owner: str | None = None,
        copy: bool = False, actor: str | None = None,
    ) -> Session:
        """Creates a session that shares the events below ``at``; without it, all events."""
        answer = self._post("fork", at=at, id=id, title=title, owner=owner, copy=copy or None, actor=actor)
        return Session(self.transport, answer["id"])

    def copy(self, at: int | None = None, *, id: str | None = None, title: str | None = None, owner: str | None = None, actor: str | None = None) -> Session:
        """Forks to an independent session that is not shown as a branch of this one."""
        return self.fork(at, id=id, title=title, owner=owner, copy=True, actor=actor)

    def erase(
        self, ranges: Iterable[tuple[int, int]] = (), *, all: bool = False, reason: str | None = None, actor: str | None = None,
    ) -> Erased:
        """Removes the payloads of events for good. Each range is a pair of offsets, without the second."""
        events = [{"from": a, "to": b} for a, b in ranges]
        return self._post("erase", events=events or None, all=all or None, reason=reason, actor=actor)

    # Views. ``at`` asks for the view before that offset; None asks for the newest.

    def snapshot(self, *, at: int | None = None, thread: str | None = None, limit: int | None = None, before: int | None = None) -> Snapshot:
        """Returns the conversation. To continue from it, follow from its ``at``."""
        return self._get("snapshot", at=at, thread=thread, limit=limit, before=before)

    def context(self, *, at: int | None = None, thread: str | None = None, instance: str | None = None, limit: int | None = None) -> Context:
        """Returns the input of the next model call, in the form of OpenAI's chat interface."""
        return self._get("context", at=at, thread=thread, instance=instance, limit=limit)

    def summary(self, *, at: int | None = None) -> Summary:
        """Returns duration, turns, tokens, cost, tools and files."""
        return self._get("summary", at=at)

    def view(self, name: str, **query: Any) -> dict[str, Any]:
        """Returns another view of docs/http.md, such as "plan", "tasks" or "branches"."""
        return self._get(name, **query)

    def export(
        self, format: str = "ndjson", to: BinaryIO | None = None, *, at: int | None = None, effective: bool = False,
        terminal: str | None = None, redact: dict[str, list[str]] | None = None, timeout: float = 600.0,
    ) -> bytes:
        """Returns the session as a file, or writes it to ``to`` and returns nothing. If it raises,
        what was written is incomplete."""
        members = {"format": format, "at": at, "terminal": terminal, "redact": redact, "view": "effective" if effective else None}
        answer = self.transport.open(
            "POST", self._path(("export",)), body=encode({k: v for k, v in members.items() if v is not None}),
            content_type="application/json", accept="*/*", timeout=timeout)
        try:
            if to is None:
                return answer.read(self.transport.max_answer)
            for piece in answer.pieces():
                to.write(piece)
            return b""
        finally:
            answer.close()


def encode_events(events: Iterable[NewEvent]) -> bytes:
    """Returns events as a JSON array."""
    return encode([e.to_dict() if isinstance(e, Event) else dict(e) for e in events])


def _filter(channel: Any, thread: Any, type: Any, invocation: Any, effective: bool) -> dict[str, Any]:
    given = {"channel": channel, "thread": thread, "type": type, "invocation": invocation}
    query: dict[str, Any] = {k: v if v is None or isinstance(v, str) else list(v) for k, v in given.items()}
    query["view"] = "effective" if effective else None
    return query
