"""A tool call of a recorded run."""

from __future__ import annotations

import json
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .errors import Cancelled, TapedeckError

if TYPE_CHECKING:
    from .run import Run


class ToolCall:
    """A tool call of a :class:`Run`, as a context manager. ``id`` is that of the call.

    If the block raises, the exception's text is the result, marked as failed. A block that
    gives no result records an empty one.
    """

    def __init__(self, run: Run, name: str, arguments: Any, id: str) -> None:
        self.id = id
        self._run, self._name, self._arguments = run, name, arguments
        self._done = False
        self._since = 0.0

    def __enter__(self) -> Self:
        arguments = self._arguments if isinstance(self._arguments, str) else text_of({} if self._arguments is None else self._arguments)
        self._run.begin_tool(self.id, self._name)
        self._run.tool_arguments(self.id, arguments)
        self._run.end_stream("tool", self.id)
        self._since = time.monotonic()
        return self

    def result(self, value: Any) -> None:
        """Records the result: a string, or any JSON."""
        self._finish(value, False)

    def error(self, message: str) -> None:
        """Records that the tool failed."""
        self._finish(message, True)

    def _finish(self, value: Any, failed: bool) -> None:
        if self._done:
            raise TapedeckError("invalid", f"the call {self.id} has its result already")
        self._run.tool_result(self.id, value, failed=failed, duration_ms=int((time.monotonic() - self._since) * 1000))
        self._done = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._done:
            return
        if error is None:
            self.result("")
        elif not isinstance(error, Cancelled):
            try:
                self.error(str(error) or type(error).__name__)
            except TapedeckError as e:
                error.add_note(f"tapedeck: the result of {self._name} was not recorded: {e}")


def clean(text: str) -> str:
    """Returns a text that is valid UTF-8: a surrogate without its pair becomes "?". Two that are
    a pair become their character: JSON that divides it leaves them apart."""
    if not isinstance(text, str):
        raise TapedeckError("invalid", f"a text is a string, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text.encode("utf-8", "replace").decode()
    return text


def text_of(value: Any) -> str:
    """Returns a value as JSON."""
    try:
        return clean(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as e:
        raise TapedeckError("invalid", f"this is not JSON: {e}") from e
