"""Answers that no server should give."""

import re
import socket
import threading
import time
import unittest

from tapedeck import Client, TapedeckError

from .support import Hostile, answer


class HostileAnswers(unittest.TestCase):
    def error(self, data: bytes, **options) -> TapedeckError:  # type: ignore[no-untyped-def]
        server = Hostile(lambda sock, head, n: sock.sendall(data))
        self.addCleanup(server.stop)
        client = Client(server.url, **{"timeout": 2, "max_answer": 1 << 20, **options})
        self.addCleanup(client.close)
        with self.assertRaises(TapedeckError) as e:
            client.session("x").info()
        return e.exception

    def test_errors_of_a_proxy(self) -> None:
        e = self.error(answer("502 Bad Gateway", "text/html", b"<html><head><title>Oops</title></head>" + b"x" * 100_000))
        self.assertEqual((e.kind, e.status, e.may_pass), ("unavailable", 502, True))
        self.assertIn("Oops", e.message)
        self.assertNotIn("<html>", e.message)
        self.assertLess(len(str(e)), 500)
        for status, kind in ((401, "unauthorized"), (403, "forbidden"), (418, "invalid"), (500, "internal"), (429, "limited")):
            self.assertEqual(self.error(answer(f"{status} X", "text/plain", b"\x1b[2Jno")).kind, kind)
        self.assertNotIn("\x1b", self.error(answer("403 X", "text/plain", b"\x1b[2Jno")).message)
        e = self.error(answer("302 Found", "text/html", b"", more="Location: https://login.example/\r\n"))
        self.assertEqual(e.kind, "unsupported")
        self.assertIn("login.example", e.message)

    def test_errors_of_the_server(self) -> None:
        e = self.error(answer("429 X", "application/json", b'{"error":{"kind":"limited","message":"slow","hint":"wait"}}', more="Retry-After: 3\r\n"))
        self.assertEqual((e.kind, e.message, e.hint, e.retry_after), ("limited", "slow", "wait", 3.0))
        for body in (b'{"error":{"kind":1,"message":2}}', b"[]", b'{"error":"x"}', b"[" * 60_000, b"\xff\xfe"):
            self.assertEqual(self.error(answer("404 X", "application/json", body)).kind, "not_found")

    def test_answers_that_are_not_json(self) -> None:
        for content_type, body in (("text/html", b"<html>"), ("application/json", b"{"), ("application/json", b"[]"), ("application/json", b"[" * 100_000)):
            self.assertEqual(self.error(answer("200 OK", content_type, body)).kind, "unsupported")

    def test_answers_that_are_cut_off(self) -> None:
        for data in (
            b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nContent-Type: application/js", b"garbage\r\n\r\n", answer("200 OK", "application/json", b'{"id":', length=100),
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
            b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000, b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        ):
            with self.subTest(data[:80]):
                self.assertEqual(self.error(data).kind, "unavailable")

    def test_answers_that_are_too_large(self) -> None:
        self.assertEqual(self.error(answer("200 OK", "application/json", b'"' + b"x" * (2 << 20))).kind, "too_large")

    def test_a_server_that_drips_does_not_hold_a_caller(self) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)
        for start in (b"HTTP/1.1 200 OK\r\nX: ", answer("200 OK", "application/json", b"{", length=1000)):
            def drip(sock, head, n, start=start):  # type: ignore[no-untyped-def]
                sock.sendall(start)
                while not ended.wait(0.05):
                    sock.sendall(b" ")

            server = Hostile(drip)
            self.addCleanup(server.stop)
            client = Client(server.url, timeout=0.5)
            self.addCleanup(client.close)
            before = time.monotonic()
            with self.assertRaises(TapedeckError) as e:
                client.session("x").info()
            self.assertEqual(e.exception.kind, "unavailable")
            self.assertLess(time.monotonic() - before, 5)

    def test_a_server_that_is_away(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with self.assertRaises(TapedeckError) as e:
            Client(f"http://127.0.0.1:{port}").agents()
        self.assertEqual((e.exception.kind, e.exception.status), ("unavailable", 0))
        self.assertIn("tapedeck serve", e.exception.hint)

    def test_a_body_that_is_refused_before_its_end(self) -> None:
        """The server answers and closes while the client still writes."""
        refusal = answer("413 X", "application/json", b'{"error":{"kind":"too_large","message":"too much"}}')

        def refuse(sock, head, n):  # type: ignore[no-untyped-def]
            sock.sendall(refusal)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1)

        server = Hostile(refuse)
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        session = client.session("x")
        large = {"type": "a", "data": {"text": "x" * (16 << 20)}}
        for append in (session.append, session.producer().append):
            with self.assertRaises(TapedeckError) as e:
                append(large)
            self.assertEqual((e.exception.kind, e.exception.status), ("too_large", 413))
        self.assertEqual(server.connections, 2)  # the producer does not repeat it

    def test_only_a_change_without_an_answer_is_in_doubt(self) -> None:
        server = Hostile(lambda sock, head, n: None)
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        for call, doubt in ((client.session("x").info, False), (client.session("x").clear, True)):
            with self.assertRaises(TapedeckError) as e:
                call()
            self.assertEqual("not known" in str(e.exception), doubt)

    def test_a_change_is_sent_once(self) -> None:
        """A connection that breaks does not make the client send a change a second time."""
        ok = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
        heads = []

        def handler(sock, head, n):  # type: ignore[no-untyped-def]
            heads.append(head)
            sock.sendall(ok)
            sock.recv(65536)  # the second request on this connection gets no answer

        server = Hostile(handler)
        self.addCleanup(server.stop)
        client = Client(server.url, timeout=2)
        self.addCleanup(client.close)
        client.session("x").info()
        with self.assertRaises(TapedeckError) as e:
            client.session("x").clear()
        self.assertEqual((e.exception.kind, server.connections), ("unavailable", 1))
        client.session("x").info()
        client.session("x").info()  # is a question, so it is asked again on a new connection
        self.assertEqual(server.connections, 3)

    def test_a_producer_repeats_the_append_without_an_answer(self) -> None:
        ok = b'{"head":1,"first":0,"last":0}'
        sent = []

        def handler(sock, head, n):  # type: ignore[no-untyped-def]
            body = head.partition(b"\r\n\r\n")[2]
            while len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1]):
                body += sock.recv(65536)
            sent.append((int(re.search(rb"Producer-Seq: (\d+)", head)[1]), re.findall(rb"If-Match: (\d+)", head), body))
            if n >= 2:
                sock.sendall(answer("200 OK", "application/json", ok))

        server = Hostile(handler)
        self.addCleanup(server.stop)
        client = Client(server.url, timeout=2)
        self.addCleanup(client.close)
        p = client.session("x").producer(give_up=0.15)
        with self.assertRaises(TapedeckError) as e:
            p.append({"type": "a"}, expect=7)
        self.assertEqual(e.exception.kind, "unavailable")
        p.append({"type": "b"})
        one = (0, [b"7"], b'[{"type":"a"}]')
        self.assertEqual(sent, [one, one, one, (1, [], b'[{"type":"b"}]')])
