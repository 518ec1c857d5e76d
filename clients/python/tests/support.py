"""A real server, and servers that answer what they should not."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path

from tapedeck import Client

ROOT = Path(__file__).resolve().parents[3]


class Server:
    """The real program on a data folder of its own."""

    def __init__(self, *flags: str) -> None:
        self.flags = flags
        self.data = tempfile.mkdtemp(prefix="tapedeck-py-")
        self.address = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        binary = os.environ.get("TAPEDECK_BIN") or str(ROOT / "bin" / "tapedeck")
        if not os.path.exists(binary):
            raise unittest.SkipTest(f"{binary} is missing; make build makes it")
        env = {k: v for k, v in os.environ.items() if not k.startswith("TAPEDECK_")}
        self.process = subprocess.Popen(
            [binary, "serve", "--data", self.data, "--listen", self.address, *self.flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=self.data)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://(\S+)", line)
        if not found:
            raise RuntimeError(f"the server said {line!r}")
        self.address = found[1]
        self.url = "http://" + self.address

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.data, ignore_errors=True)


class ServerCase(unittest.TestCase):
    """Tests that share one real server."""

    flags: tuple[str, ...] = ()
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server(*cls.flags)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)


Handler = Callable[[socket.socket, bytes, int], None]


class Hostile:
    """A server that answers each connection with a function: it gets the socket, the head of the
    request and the number of the connection, from 0."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            number, self.connections = self.connections, self.connections + 1
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        with sock:
            head = b""
            try:
                while b"\r\n\r\n" not in head:
                    piece = sock.recv(65536)
                    if not piece:
                        return
                    head += piece
                self._handler(sock, head, number)
            except OSError:
                pass  # the client has disconnected

    def stop(self) -> None:
        self._listener.close()


def answer(status: str, content_type: str, body: bytes, length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    return (f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {size}\r\nConnection: close\r\n{more}\r\n").encode() + body


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def frame(offset: int, type: str = "acme.note") -> bytes:
    return b'id: %d\ndata: {"offset":%d,"type":"%s"}\n\n' % (offset, offset, type.encode())
