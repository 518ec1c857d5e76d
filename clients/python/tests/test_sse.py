"""Frames, however a stream ends its lines and however it arrives."""

import unittest

from tapedeck.sse import Frame, frames

STREAM = b"id: 7\ndata: a\ndata:  b\n\n: hi\n\nevent: e\ndata: {\ndata:\ndata:}\n\n"
FRAMES = [Frame("", "7", b"a\n b"), Frame(":", "", b""), Frame("e", "", b"{\n\n}")]


class Sse(unittest.TestCase):
    def test_ends_of_lines(self) -> None:
        for end in (b"\n", b"\r", b"\r\n"):
            for mark in (b"", b"\xef\xbb\xbf"):
                stream = mark + STREAM.replace(b"\n", end)
                for size in (1, 2, 3, 5, len(stream)):
                    with self.subTest(end=end, mark=mark, size=size):
                        pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
                        self.assertEqual(list(frames([b"", *pieces, b""], 1000)), FRAMES)

    def test_mixed_ends(self) -> None:
        self.assertEqual(list(frames([b"data: a\r", b"", b"\ndata: b\r\r", b"\xef\xbbdata: no\n\n"], 1000)), [Frame("", "", b"a\nb")])

    def test_a_frame_ends_with_its_last_byte(self) -> None:
        stream = iter([b"data: a\r\r"])
        self.assertEqual(next(frames(stream, 1000)), Frame("", "", b"a"))

    def test_only_part_of_a_mark(self) -> None:
        self.assertEqual(list(frames([b"\xef", b"\xbb"], 1000)), [])
