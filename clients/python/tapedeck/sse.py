"""Frames of Server-Sent Events."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .errors import TapedeckError


@dataclass(frozen=True, slots=True)
class Frame:
    event: str  # "" for an event without a name
    id: str  # "" if it has none
    data: bytes


class Parser:
    """Takes the pieces of a stream and returns its frames. A comment is a frame with the event ":"."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._start = b""  # what may be the beginning of a byte order mark
        self._begun = self._cr = False  # cr: the last line ended with CR; an LF after it is part of that end
        self._rest = bytearray()
        self._seen = 0  # how much of rest has no end of line
        self._size = 0  # of the frame so far
        self._event = self._id = ""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[Frame]:
        self._rest += self._lines(piece)
        start = 0
        while (end := self._rest.find(b"\n", max(self._seen, start))) >= 0:
            line = bytes(self._rest[start:end])
            start = end + 1
            frame = self._line(line)
            if frame is not None:
                yield frame
        del self._rest[:start]
        self._seen = len(self._rest)
        if self._size + len(self._rest) > self._limit:
            raise TapedeckError("too_large", f"the stream has an event of more than {self._limit} bytes", "give the client a larger max_answer")

    def _lines(self, piece: bytes) -> bytes:
        """Returns the piece with lines that end with LF, and without the byte order mark of the stream."""
        if not self._begun:
            piece = self._start + piece
            self._begun = len(piece) >= len(BOM_UTF8) or not BOM_UTF8.startswith(piece)
            if not self._begun:
                self._start = piece
                return b""
            piece = piece.removeprefix(BOM_UTF8)
        if self._cr:
            self._cr = not piece
            piece = piece.removeprefix(b"\n")
        if b"\r" in piece:
            self._cr = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return piece

    def _line(self, line: bytes) -> Frame | None:
        if not line:
            frame = Frame(self._event, self._id, b"\n".join(self._data)) if self._data else None
            self._event = self._id = ""
            self._data, self._size = [], 0
            return frame
        self._size += len(line)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"":
            return Frame(":", "", b"")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
        return None


def frames(pieces: Iterable[bytes], limit: int) -> Iterator[Frame]:
    """Yields the frames of a stream, each of at most limit bytes."""
    parser = Parser(limit)
    for piece in pieces:
        yield from parser.feed(piece)
