"""Workflows: diagrams in BPMN 2.0 that the server keeps and runs."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from .transport import Transport
from .types import Diagram, DiagramVersion, Started

_PATH = "/api/v1/workflows"
_Versions = list[DiagramVersion]  # a method is called list


class Workflows:
    """The workflows of a server. ``client.workflows`` is one.

    Where a diagram is wanted, either ``bpmn`` is its XML, or ``name`` is that of a stored one.
    ``version`` is the digest of an older version of it. ``process`` is needed only if the diagram
    has several processes that could run. ``agents`` names agents of tasks, by the id of the
    element or by its job type; ``"*"`` is for tasks that name none.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def list(self) -> _Versions:
        """Returns the current version of each stored workflow, by the names."""
        return self.transport.call("GET", _PATH).get("workflows") or []

    def get(self, name: str, *, version: str | None = None) -> Diagram:
        """Returns a stored workflow with its diagram, its versions, and what a run of it needs."""
        return self.transport.call("GET", _path(name), query={"version": version})

    def put(self, name: str, bpmn: str | bytes) -> Diagram:
        """Stores a diagram as the current version of a name. One that cannot run is an
        ``invalid`` error."""
        return self.transport.call("PUT", _path(name), {"bpmn": _text(bpmn)})

    def delete(self, name: str) -> None:
        """Deletes a stored workflow with all its versions. Runs of it continue."""
        self.transport.call("DELETE", _path(name))

    def check(
        self, bpmn: str | bytes | None = None, *, name: str | None = None, version: str | None = None,
        process: str | None = None, agents: dict[str, str] | None = None,
    ) -> Diagram:
        """Says what a diagram would do and what a run of it needs, and starts nothing."""
        body = _given(bpmn=_text(bpmn), name=name, version=version, process=process, agents=agents)
        return self.transport.call("POST", _PATH + "/check", body)

    def run(
        self, bpmn: str | bytes | None = None, *, name: str | None = None, version: str | None = None,
        process: str | None = None, variables: dict[str, Any] | None = None, agents: dict[str, str] | None = None,
        session: str | None = None, thread: str | None = None, title: str | None = None, actor: str | None = None,
    ) -> Started:
        """Starts a workflow, in a new session without ``session``. Nothing is started if the
        diagram, an agent or a variable is wrong. Follow the session to see how it proceeds;
        :meth:`tapedeck.Session.workflow` says where it is."""
        body = _given(
            bpmn=_text(bpmn), name=name, version=version, process=process, variables=variables, agents=agents,
            session=session, thread=thread, title=title, actor=actor)
        return self.transport.call("POST", _PATH + "/run", body)


def _path(name: str) -> str:
    return f"{_PATH}/{quote(name, safe='')}"


def _text(bpmn: str | bytes | None) -> str | None:
    return bpmn.decode() if isinstance(bpmn, bytes) else bpmn


def _given(**members: Any) -> dict[str, Any]:
    return {k: v for k, v in members.items() if v is not None}
