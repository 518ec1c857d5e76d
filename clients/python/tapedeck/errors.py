"""The errors of the client."""

from __future__ import annotations

import json
import re

_KINDS = {
    401: "unauthorized", 403: "forbidden", 404: "not_found", 408: "unavailable", 409: "conflict",
    410: "gone", 412: "precondition", 413: "too_large", 415: "unsupported", 429: "limited",
    502: "unavailable", 503: "unavailable", 504: "unavailable",
}

# Errors of these kinds may pass by themselves, so a stream connects again.
_PASSING = frozenset({"unavailable", "internal", "limited"})


class TapedeckError(Exception):
    """An error of the server, of a proxy in front of it, or of the connection.

    ``kind`` is one of the kinds in ``docs/http.md``. A server that cannot be reached, an answer
    that takes too long and a connection that breaks are ``unavailable``; the message then says
    whether the request may have been carried out.
    ``hint`` says what to do, or is empty. ``status`` is the HTTP status, 0 if there was no
    answer. ``head`` is the current head if an append named another one, otherwise None.
    ``retry_after`` is how many seconds the server asks to wait, otherwise None.
    """

    def __init__(
        self, kind: str, message: str, hint: str = "", status: int = 0, *,
        head: int | None = None, retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.status = status
        self.head = head
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in _PASSING


class MalformedError(TapedeckError):
    """The server sent something that is not its protocol. Another attempt does not repair it."""

    def __init__(self, message: str) -> None:
        super().__init__("internal", message, "is a Tapedeck server at this address?")

    @property
    def may_pass(self) -> bool:
        return False


class Cancelled(TapedeckError):
    """The recorded run was cancelled, by a user on any screen or by another program.

    The log has the terminal event already. ``kind`` is ``cancelled``, which no server sends.
    """

    def __init__(self, invocation: str) -> None:
        super().__init__("cancelled", f"run {invocation} was cancelled")
        self.invocation = invocation


def error_of(status: int, reason: str, content_type: str, headers: dict[str, str], body: bytes) -> TapedeckError:
    """Returns the error in an answer with a status from 300 on."""
    head = _integer(headers.get("etag", "").strip('"'))
    wait = _integer(headers.get("retry-after", ""))
    extra = {"head": head, "retry_after": None if wait is None else float(min(wait, 3600))}
    try:
        e = json.loads(body)["error"]
        kind, message, hint = e["kind"], e["message"], e.get("hint", "")
        if all(isinstance(s, str) for s in (kind, message, hint)) and kind:
            return TapedeckError(kind, message, hint, status, **extra)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass  # it is not an error of Tapedeck
    if status < 400:
        return TapedeckError(
            "unsupported", f"the server answered {status} {reason}, which leads to {_short(headers.get('location', ''))!r}",
            "give the client the URL to which it leads", status, **extra)
    kind = _KINDS.get(status, "invalid" if status < 500 else "internal")
    what = _short(body.decode("utf-8", "replace"))
    if "html" in content_type:
        what = "a page, probably of a proxy in front of the server: " + _short(re.sub(r"(?s)<[^>]{0,1000}>", " ", what))
    return TapedeckError(kind, f"the server answered {status} {reason}: {what}", "", status, **extra)


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def _short(text: str) -> str:
    """Returns the beginning of a text that anyone may have written, on one line."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text[:2000]).split())
    return text if len(text) <= 200 else text[:200] + "…"
