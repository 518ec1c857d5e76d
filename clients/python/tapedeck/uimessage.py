"""Records a stream of the AI SDK's UI messages as the events of a run."""

from __future__ import annotations

import json
from typing import Any

from .run import Run
from .tool import clean, text_of


class Recorder:
    """Takes the chunks of one stream in their order. Chunks that it does not know, and those that
    are malformed, are recorded as a ``CUSTOM`` with the name ``ai-sdk.<type>``."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._before: set[str] = set()  # the tools of earlier steps
        self._tools: dict[str, str] = {}  # id to "begun", "sent" (some arguments have arrived) or "ended"
        self._ended: tuple[str, str] | None = None

    def take(self, data: bytes) -> None:
        """Records the data of one frame."""
        if data == b"[DONE]":
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict) or not isinstance(chunk.get("type"), str):
            self._custom("malformed", data[:4096].decode("utf-8", "replace"))
            return
        kind = chunk["type"]
        handler = getattr(self, "_" + kind.replace("-", "_"), None) if kind in _KNOWN else None
        if handler is not None and all(_fits(name, chunk.get(name)) for name in _KNOWN[kind]):
            handler(chunk)
        elif kind not in _SILENT and not chunk.get("transient"):
            self._custom(kind, chunk)

    def end(self, whole: bool) -> None:
        """Ends the run as the stream has ended; whole says that the application completed it."""
        how, why = self._ended or (("finish", "") if whole else ("error", "the application ended the stream early"))
        if how == "error":
            self._run.fail(why)
        elif how == "abort":
            self._run.cancel()
        else:
            self._run.finish()

    def _custom(self, kind: str, value: Any) -> None:
        self._run.custom("ai-sdk." + kind, value)

    def _start_step(self, _: dict[str, Any]) -> None:
        self._before = set(self._tools)
        self._run.next_turn()

    def _reset_step(self, _: dict[str, Any]) -> None:
        self._tools = {id: state for id, state in self._tools.items() if id in self._before}
        self._run.attempt()

    def _text_delta(self, c: dict[str, Any]) -> None:
        self._run.stream("text", "=" + c["id"], c["delta"])

    def _text_end(self, c: dict[str, Any]) -> None:
        self._run.end_stream("text", "=" + c["id"])

    def _reasoning_delta(self, c: dict[str, Any]) -> None:
        self._run.stream("thought", "=" + c["id"], c["delta"])

    def _reasoning_end(self, c: dict[str, Any]) -> None:
        self._run.end_stream("thought", "=" + c["id"])

    def _tool_input_start(self, c: dict[str, Any]) -> None:
        if c["toolCallId"] not in self._tools:
            self._tools[c["toolCallId"]] = "begun"
            self._run.begin_tool(c["toolCallId"], c["toolName"])

    def _tool_input_delta(self, c: dict[str, Any]) -> None:
        if self._tools.get(c["toolCallId"], "ended") != "ended":
            self._tools[c["toolCallId"]] = "sent"
            self._run.tool_arguments(c["toolCallId"], c["inputTextDelta"])

    def _tool_input_available(self, c: dict[str, Any]) -> None:
        self._tool_input_start(c)
        if self._tools[c["toolCallId"]] == "begun":
            self._run.tool_arguments(c["toolCallId"], text_of(c.get("input")))
        self._tool_ended(c)
        self._run.end_stream("tool", c["toolCallId"])

    def _tool_ended(self, c: dict[str, Any]) -> None:
        self._tools[c["toolCallId"]] = "ended"

    def _tool_input_error(self, c: dict[str, Any]) -> None:
        self._tool_input_available(c)
        self._run.tool_result(c["toolCallId"], c["errorText"], failed=True)

    def _tool_output_available(self, c: dict[str, Any]) -> None:
        if not c.get("preliminary"):
            self._tool_ended(c)
            self._run.tool_result(c["toolCallId"], c.get("output"))

    def _tool_output_error(self, c: dict[str, Any]) -> None:
        self._tool_ended(c)
        self._run.tool_result(c["toolCallId"], c["errorText"], failed=True)

    def _tool_output_denied(self, c: dict[str, Any]) -> None:
        self._tool_ended(c)
        self._run.tool_result(c["toolCallId"], "the user did not allow it", failed=True)

    def _error(self, c: dict[str, Any]) -> None:
        self._ended = self._ended or ("error", c["errorText"])

    def _abort(self, _: dict[str, Any]) -> None:
        self._ended = self._ended or ("abort", "")

    def _finish(self, _: dict[str, Any]) -> None:
        self._ended = self._ended or ("finish", "")


# The types that become events of their own, with the strings that each must have.
_KNOWN: dict[str, tuple[str, ...]] = {
    "start-step": (), "reset-step": (), "finish": (), "abort": (), "error": ("errorText",),
    "text-delta": ("id", "delta"), "text-end": ("id",), "reasoning-delta": ("id", "delta"), "reasoning-end": ("id",),
    "tool-input-start": ("toolCallId", "toolName"), "tool-input-delta": ("toolCallId", "inputTextDelta"),
    "tool-input-available": ("toolCallId", "toolName"), "tool-input-error": ("toolCallId", "toolName", "errorText"),
    "tool-output-available": ("toolCallId",), "tool-output-error": ("toolCallId", "errorText"),
    "tool-output-denied": ("toolCallId",),
}

# The types that say nothing that the log needs.
_SILENT = frozenset({"start", "finish-step", "text-start", "reasoning-start"})


def _fits(name: str, value: Any) -> bool:
    """Whether a member is a string that an event can have: ids have 1 to 1,024 bytes."""
    return isinstance(value, str) and (name != "toolCallId" or 0 < len(clean(value).encode()) <= 1024 and clean(value) == value)
