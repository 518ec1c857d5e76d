"""What the server answers, as in docs/http.md.

A newer server may send more members than these. Members that have no value are absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from .errors import MalformedError


@dataclass(frozen=True, slots=True)
class Event:
    """One immutable record of a session; docs/events.md has all types.

    An event to append needs a type, and the data that its type requires. ``offset`` is -1, and
    the other members that are not set are empty. ``turn`` is the number of the model call, 0 if
    there is none.
    """

    type: str
    data: dict[str, Any] = field(default_factory=dict)
    thread: str = ""
    invocation: str = ""
    instance: str = ""
    turn: int = 0
    actor: str = ""
    channel: str = ""
    timestamp: str = ""
    offset: int = -1

    def to_dict(self) -> dict[str, Any]:
        """The event as it is sent: without what the server sets, and without what is not set."""
        out: dict[str, Any] = {"type": self.type}
        for name in ("thread", "invocation", "instance", "turn", "actor"):
            if value := getattr(self, name):
                out[name] = value
        if self.data:
            out["data"] = self.data
        return out


_STRINGS = ("type", "thread", "invocation", "instance", "actor", "channel", "timestamp")


def event_of(value: Any, offset: int | None = None) -> Event:
    """Returns an event that a server sent. Anything else is an error."""
    if isinstance(value, dict):
        at = value.get("offset", offset)
        known: dict[str, Any] = {n: value[n] for n in _STRINGS if n in value}
        data, turn = value.get("data", {}), value.get("turn", 0)
        if all(isinstance(s, str) for s in known.values()) and known.get("type") and isinstance(data, dict) \
                and type(turn) is int and type(at) is int and at >= 0 and offset in (None, at):
            return Event(data=data, turn=turn, offset=at, **known)
    raise MalformedError("the server sent something that is not an event")


class OpenRun(TypedDict):
    invocation: str
    thread: str
    offset: int
    started_at: str
    owner: NotRequired[str]
    implied: NotRequired[bool]
    lease_ms: NotRequired[int]
    parent: NotRequired[str]


class OpenQuestion(TypedDict):
    id: str
    thread: str
    invocation: str
    offset: int
    asked_at: str
    tool: NotRequired[str]
    message: NotRequired[str]


class Amount(TypedDict):
    tokens: NotRequired[int]
    usd: NotRequired[float]
    turns: NotRequired[int]
    seconds: NotRequired[float]


class SessionBudget(Amount):
    grants: NotRequired[int]


class Spending(Amount):
    since: NotRequired[str]


class SessionInfo(TypedDict):
    id: str
    kind: str
    created_at: str
    updated_at: str
    head: int
    title: NotRequired[str]
    owner: NotRequired[str]
    agent: NotRequired[str]
    labels: NotRequired[dict[str, str]]
    status: NotRequired[str]
    runs: NotRequired[list[OpenRun]]
    inputs: NotRequired[list[WaitingInput]]
    waiting: NotRequired[list[OpenQuestion]]
    budget: NotRequired[SessionBudget]
    spent: NotRequired[Spending]
    resumable: NotRequired[bool]
    closed: NotRequired[bool]
    parent: NotRequired[str]
    fork_at: NotRequired[int]
    copy: NotRequired[bool]
    content_type: NotRequired[str]
    expires_at: NotRequired[str]


class Appended(TypedDict):
    head: int
    first: NotRequired[int]
    last: NotRequired[int]
    duplicate: NotRequired[bool]


class Started(TypedDict):
    session_id: str
    invocation_id: str
    status: str
    offset: int
    marker: NotRequired[str]
    repeated: NotRequired[bool]
    input_id: NotRequired[str]
    when: NotRequired[str]
    note: NotRequired[str]


When = Literal["now", "queue", "steer", "interrupt"]


class Input(TypedDict):
    id: str
    status: Literal["waiting", "steered", "started", "withdrawn"]
    when: str
    thread: str
    offset: int
    started_at: str
    text: NotRequired[str]
    agent: NotRequired[str]
    outside: NotRequired[bool]
    actor: NotRequired[str]
    invocation: NotRequired[str]
    instance: NotRequired[str]
    subagent: NotRequired[str]
    turn: NotRequired[int]
    reason: NotRequired[str]
    end_offset: NotRequired[int]
    ended_at: NotRequired[str]
    duration_ms: NotRequired[int]


class WaitingInput(TypedDict):
    id: str
    thread: str
    offset: int
    when: NotRequired[str]
    outside: NotRequired[bool]


class Taken(TypedDict):
    input_id: str
    invocation_id: str
    offset: int
    message: dict[str, Any]
    repeated: NotRequired[bool]


class RenewedRun(TypedDict):
    session_id: str
    invocation_id: str
    lease_ms: int


class CancelledRun(TypedDict):
    session_id: str
    invocation_id: str
    status: str
    offset: int
    resumable: bool
    withdrawn: NotRequired[int]


class Answered(TypedDict):
    permission: str
    option: str
    offset: int


class Rewound(TypedDict):
    session_id: str
    offset: int
    to_offset: int
    status: str
    thread: NotRequired[str]
    marker: NotRequired[str]
    cancelled: NotRequired[list[str]]
    undoes: NotRequired[str]


class Erased(TypedDict):
    session_id: str
    offset: int
    events: int
    ranges: list[dict[str, int]]
    forks: NotRequired[list[str]]


class Snapshot(TypedDict):
    session: dict[str, Any]
    at: int
    threads: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    tool_calls: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    state: dict[str, Any] | None
    plan: dict[str, Any] | None
    thread: NotRequired[str]
    permissions: NotRequired[list[Permission]]
    inputs: NotRequired[list[Input]]
    earlier: NotRequired[int]
    notes: NotRequired[list[dict[str, Any]]]
    notes_left_out: NotRequired[int]


class Context(TypedDict):
    at: int
    thread: str
    messages: list[dict[str, Any]]
    places: list[dict[str, Any]]
    events: NotRequired[list[dict[str, Any]]]
    instance: NotRequired[str]
    earlier: NotRequired[int]


class Summary(TypedDict):
    status: str
    at: int
    events: int
    inherited_events: int
    axis: str
    recording_ms: int
    elapsed_ms: int
    duration_ms: int
    turns: int
    model_turns: int
    runs: dict[str, int]
    messages: dict[str, int]
    tokens: dict[str, int]
    models: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    files_modified: list[dict[str, Any]]
    lines_added: int
    lines_removed: int
    final_status: NotRequired[str]
    resumable: NotRequired[bool]
    started_at: NotRequired[str]
    updated_at: NotRequired[str]
    files_left_out: NotRequired[int]
    cost_usd: NotRequired[float]
    last_message: NotRequired[dict[str, str]]


class SearchResult(TypedDict):
    hits: list[dict[str, Any]]
    next: NotRequired[str]
    behind: NotRequired[int]


class Agent(TypedDict):
    name: str
    kind: str
    description: NotRequired[str]
    models: NotRequired[list[str]]
    folders: NotRequired[list[str]]
    capabilities: NotRequired[dict[str, bool]]
    unavailable: NotRequired[str]


class StoreStats(TypedDict):
    kind: str
    groups: int
    requests: int
    failures: int
    group_seconds: float
    commit_seconds: float
    events: int
    bytes: int
    queue: int
    log_bytes: int
    data_bytes: int
    cached: int
    damaged: int
    tail_bytes: int
    tail_hits: int
    tail_misses: int


class FollowerStats(TypedDict):
    open: int
    behind: int


class RunStats(TypedDict):
    running: int
    waiting: int
    inputs: int
    driven: int
    ended: dict[str, int]


class SearchStats(TypedDict):
    behind: int


class ProtocolStats(TypedDict):
    protocol: str
    open: int
    streams: int
    answered: int
    seconds: float
    errors: NotRequired[dict[str, int]]


class Stats(TypedDict):
    version: str
    instance: str
    started_at: str
    store: StoreStats
    followers: FollowerStats
    runs: RunStats
    search: SearchStats
    requests: list[ProtocolStats]
    body_bytes: int
    heap_bytes: int
    goroutines: int


class Problem(TypedDict):
    line: NotRequired[int]
    element: NotRequired[str]
    name: NotRequired[str]
    message: str
    hint: NotRequired[str]


class FormOption(TypedDict):
    value: str
    label: NotRequired[str]


class FormField(TypedDict):
    id: str
    type: str
    label: NotRequired[str]
    required: NotRequired[bool]
    readOnly: NotRequired[bool]
    default: NotRequired[Any]
    options: NotRequired[list[FormOption]]
    min: NotRequired[float]
    max: NotRequired[float]
    minLength: NotRequired[int]
    maxLength: NotRequired[int]


class DiagramVersion(TypedDict):
    name: str
    digest: str
    added_at: str
    size: int
    title: NotRequired[str]


class DiagramTask(TypedDict):
    element: str
    line: int
    name: NotRequired[str]
    agent: NotRequired[str]
    type: NotRequired[str]


class DiagramVariable(TypedDict):
    name: str
    element: str
    line: int
    from_message: NotRequired[bool]


class DiagramProcess(TypedDict):
    id: str
    name: NotRequired[str]


class Diagram(TypedDict):
    digest: str
    tasks: list[DiagramTask]
    name: NotRequired[str]
    title: NotRequired[str]
    process: NotRequired[str]
    processes: NotRequired[list[DiagramProcess]]
    fields: NotRequired[list[FormField]]
    unmet: NotRequired[list[Problem]]
    wanted: NotRequired[list[DiagramVariable]]
    warnings: NotRequired[list[Problem]]
    versions: NotRequired[list[DiagramVersion]]
    bpmn: NotRequired[str]


# "for" is a word of Python, so this type cannot be a class.
WorkflowWait = TypedDict("WorkflowWait", {
    "element": "str", "for": "str", "offset": "int", "due": "NotRequired[str]", "repeats": "NotRequired[int]",
    "message": "NotRequired[str]", "correlation": "NotRequired[str]", "signal": "NotRequired[str]",
    "permission": "NotRequired[str]", "agent": "NotRequired[str]", "within": "NotRequired[bool]",
})


class WorkflowElement(TypedDict):
    element: str
    status: str
    entered: int
    left: int
    offset: int
    name: NotRequired[str]
    type: NotRequired[str]
    failed: NotRequired[int]
    open: NotRequired[int]
    thread: NotRequired[str]
    attempt: NotRequired[int]


class WorkflowActivation(TypedDict):
    id: str
    element: str
    status: str
    offset: int
    started_at: str
    name: NotRequired[str]
    type: NotRequired[str]
    scope: NotRequired[str]
    index: NotRequired[int]
    count: NotRequired[int]
    thread: NotRequired[str]
    compensates: NotRequired[str]
    attempt: NotRequired[int]
    waits: NotRequired[list[WorkflowWait]]
    variables: NotRequired[dict[str, Any]]
    code: NotRequired[str]
    message: NotRequired[str]
    end_offset: NotRequired[int]
    ended_at: NotRequired[str]


class Workflow(TypedDict):
    offset: int
    thread: str
    digest: str
    status: str
    started_at: str
    variables: dict[str, Any]
    elements: list[WorkflowElement]
    flows: dict[str, int]
    activations: list[WorkflowActivation]
    tokens: list[dict[str, str]]
    invocation: NotRequired[str]
    process: NotRequired[str]
    name: NotRequired[str]
    xml: NotRequired[str]
    outcome: NotRequired[str]
    message: NotRequired[str]
    code: NotRequired[str]
    element: NotRequired[str]
    agents: NotRequired[dict[str, str]]
    ended_at: NotRequired[str]
    earlier: NotRequired[int]
    waits: NotRequired[list[WorkflowWait]]
    messages: NotRequired[list[dict[str, Any]]]


class MessageSent(TypedDict):
    invocation_id: str
    offset: int


class Permission(TypedDict):
    id: str
    status: str
    thread: str
    offset: int
    started_at: str
    options: list[dict[str, str]]
    invocation: NotRequired[str]
    message: NotRequired[str]
    tool_call_id: NotRequired[str]
    action: NotRequired[dict[str, Any]]
    form: NotRequired[list[FormField]]
    option: NotRequired[str]
    answered_by: NotRequired[str]
    input: NotRequired[dict[str, Any]]
    actor: NotRequired[str]
    instance: NotRequired[str]
    subagent: NotRequired[str]
    turn: NotRequired[int]
    end_offset: NotRequired[int]
    ended_at: NotRequired[str]
    duration_ms: NotRequired[int]


class Imported(TypedDict):
    sessions: list[str]
    events: int
    lines: int
    skipped: NotRequired[list[dict[str, Any]]]
