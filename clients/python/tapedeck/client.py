"""The client of a server."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO, Self

from .session import Session
from .transport import Headers, Transport
from .types import Agent, Amount, Imported, SearchResult, SessionInfo, Started, Stats
from .workflow import Workflows


class Client:
    """Calls one server, such as ``Client("http://127.0.0.1:4747")``.

    ``headers`` are added to each request. It may be a function, which is called before each
    request and each reconnect, so it can renew a token. ``timeout`` is how many seconds an answer
    may take as a whole, ``connect_timeout`` how many a connection. A stream that is silent for
    ``stall`` seconds is connected again; the server sends a comment every 15 seconds.
    ``max_answer`` limits the bytes of an answer, and of one event of a stream.

    ``workflows`` has the calls for workflows. A client may be used by several threads. Its errors are :class:`tapedeck.TapedeckError`.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:4747", *, headers: Headers | None = None, timeout: float = 60.0,
        connect_timeout: float = 10.0, stall: float = 45.0, max_answer: int = 256 << 20,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.transport = Transport(url, headers, timeout, connect_timeout, stall, max_answer, ssl_context)
        self.workflows = Workflows(self.transport)

    def close(self) -> None:
        """Closes idle connections."""
        self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.close()

    def session(self, id: str) -> Session:
        """Returns a handle for a session. It sends nothing: the session may not exist."""
        return Session(self.transport, id)

    def create(
        self, id: str | None = None, *, title: str | None = None, owner: str | None = None, agent: str | None = None,
        labels: dict[str, str] | None = None, budget: Amount | None = None, state: Any = None,
        actor: str | None = None,
    ) -> Session:
        """Creates a session and returns its handle. An id that exists is a ``conflict``."""
        body = without_none(id=id, title=title, owner=owner, agent=agent, labels=labels, budget=budget, state=state,
            actor=actor)
        return self.session(self.transport.call("POST", "/api/v1/sessions", body)["id"])

    def sessions(
        self, *, status: str | None = None, agent: str | None = None, owner: str | None = None, parent: str | None = None,
        labels: dict[str, str] | None = None, q: str | None = None, created_from: str | None = None,
        created_to: str | None = None, page: int = 100,
    ) -> Iterator[SessionInfo]:
        """Yields the sessions, newest first. It asks for ``page`` of them at a time, 1 to 1000."""
        query = {
            "status": status, "agent": agent, "owner": owner, "parent": parent, "q": q, "from": created_from,
            "to": created_to, "limit": page, "label": [f"{k}:{v}" for k, v in (labels or {}).items()],
        }
        while True:
            answer = self.transport.call("GET", "/api/v1/sessions", query=query)
            yield from answer.get("sessions") or []
            if not answer.get("next") or answer["next"] == query.get("cursor"):
                return
            query["cursor"] = answer["next"]

    def run(
        self, task: str, *, agent: str | None = None, thread: str | None = None, title: str | None = None,
        config: dict[str, Any] | None = None, message_id: str | None = None, actor: str | None = None,
        budget: Amount | None = None,
    ) -> Started:
        """Creates a session and starts a task with an agent of the server. See :meth:`Session.task`."""
        body = without_none(
            task=task, agent=agent, thread=thread, title=title, config=config, message_id=message_id, actor=actor,
            budget=budget)
        return self.transport.call("POST", "/api/v1/sessions/run", body)

    def agents(self) -> list[Agent]:
        """Returns the agents that accept tasks, the default agent first."""
        return self.transport.call("GET", "/api/v1/agents").get("agents") or []

    def stats(self) -> Stats:
        """Describes the server since its start."""
        return self.transport.call("GET", "/api/v1/stats")

    def search(
        self, q: str, *, session: str | None = None, kind: str | None = None, role: str | None = None,
        status: str | None = None, agent: str | None = None, owner: str | None = None, said_from: str | None = None,
        said_to: str | None = None, limit: int | None = None, cursor: str | None = None,
    ) -> SearchResult:
        """Finds text in the conversations: one page of hits, the best first."""
        return self.transport.call("GET", "/api/v1/search", query={
            "q": q, "session": session, "kind": kind, "role": role, "status": status, "agent": agent, "owner": owner,
            "from": said_from, "to": said_to, "limit": limit, "cursor": cursor})

    def import_file(
        self, data: bytes | BinaryIO, *, format: str | None = None, title: str | None = None, owner: str | None = None,
        actor: str | None = None, timeout: float = 600.0,
    ) -> Imported:
        """Creates sessions from an export or from a recorded conversation. The answer may take
        ``timeout`` seconds."""
        answer = self.transport.call_with(
            "POST", "/api/v1/import", data, "application/octet-stream",
            query={"format": format, "title": title, "owner": owner, "actor": actor}, timeout=timeout)
        return answer


def without_none(**members: Any) -> dict[str, Any]:
    """Returns the members that are given."""
    return {k: v for k, v in members.items() if v is not None}
