"""Following: each event exactly once, whatever the server and the network do."""

import threading
import time
import unittest

from tapedeck import Client, TapedeckError

from .support import STREAM, Hostile, Server, ServerCase, answer, frame


class Follow(ServerCase):
    def test_until_terminal_ends(self) -> None:
        s = self.client.create()
        run = {"invocation": "inv_a", "data": {"threadId": "main", "runId": "inv_a"}}
        s.append({"type": "RUN_STARTED", **run}, {"type": "RUN_FINISHED", **run}, {"type": "acme.note"})
        f = s.follow(until="terminal")
        self.assertEqual([e.offset for e in f], [0, 1, 2])
        self.assertEqual([e.offset for e in s.follow(1, until="terminal", invocation="inv_a")], [1, 2])

    def test_closed_and_deleted(self) -> None:
        s = self.client.create()
        s.append({"type": "acme.note"})
        f = s.follow()
        self.assertEqual([next(f).offset, next(f).offset], [0, 1])
        s.close()
        self.assertEqual([e.type for e in f], ["session.closed"])
        self.assertTrue(f.caught_up)
        s = self.client.create()
        f = s.follow()
        next(f)
        s.delete()
        with self.assertRaises(TapedeckError) as e:
            next(f)
        self.assertEqual(e.exception.kind, "not_found")

    def test_close_from_another_thread(self) -> None:
        f = self.client.create().follow()
        next(f)
        threading.Timer(0.05, f.close).start()
        self.assertEqual(list(f), [])

    def test_filter_counts_what_it_held_back(self) -> None:
        s = self.client.create()
        s.append(*[{"type": "acme.note"}] * 5, {"type": "acme.other"}, {"type": "acme.note"})
        s.close()
        f = s.follow(type="acme.other")
        self.assertEqual(([e.offset for e in f], f.cursor), ([6], 9))


class Kill(unittest.TestCase):
    def test_every_event_once_through_kills(self) -> None:
        server = Server()
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        s = client.create()
        total, reconnects = 60, []
        f = s.follow(on_reconnect=lambda attempt, error: reconnects.append(error.kind))
        up = threading.Event()
        written: list[Exception | None] = []

        def write() -> None:
            try:
                p = s.producer()
                for n in range(total):
                    p.append({"type": "acme.note", "data": {"n": n}})
                up.wait()  # a close that meets a kill is not sent again
                s.close()
                written.append(None)
            except Exception as e:
                written.append(e)
                f.close()  # nobody closes the session now, and the loop below would wait for that

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        seen = []
        for e in f:
            seen.append(e)
            if e.offset in (10, 30):
                server.restart()
            if e.offset == 30:
                up.set()
        writer.join()
        self.assertEqual(written, [None])
        self.assertEqual([e.offset for e in seen], list(range(total + 2)))
        self.assertEqual([e.data["n"] for e in seen[1:-1]], list(range(total)))
        self.assertIn("unavailable", reconnects)

    def test_a_server_that_stays_away(self) -> None:
        server = Server()
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        f = client.create().follow(give_up=0.5)
        next(f)
        server.kill()
        with self.assertRaises(TapedeckError) as e:
            next(f)
        self.assertEqual((e.exception.kind, f.cursor), ("unavailable", 1))


class Cut(unittest.TestCase):
    def follow(self, handler, **options):  # type: ignore[no-untyped-def]
        server = Hostile(handler)
        self.addCleanup(server.stop)
        client = Client(server.url, timeout=2, stall=options.pop("stall", 2), max_answer=options.pop("max_answer", 1 << 20))
        self.addCleanup(client.close)
        return server, client.session("x").follow(**options)

    def test_cut_in_the_middle_of_an_event(self) -> None:
        heads = []

        def handler(sock, head, n):  # type: ignore[no-untyped-def]
            heads.append(head)
            if n == 0:
                sock.sendall(STREAM + frame(0) + frame(1) + frame(2)[:20])
            elif n == 1:
                sock.sendall(STREAM + frame(1) + frame(2))  # a proxy repeats an event
            else:
                sock.sendall(STREAM + b'event: end\ndata: {"reason":"closed"}\n\n')

        _, f = self.follow(handler)
        self.assertEqual([e.offset for e in f], [0, 1, 2])
        self.assertIn(b"fromOffset=2", heads[1])
        self.assertIn(b"Last-Event-ID: 1\r\n", heads[1])
        self.assertNotIn(b"Last-Event-ID", heads[0])

    def test_a_session_that_was_replaced(self) -> None:
        refusal = b'{"error":{"kind":"replaced","message":"your cursor is of another history of session x","hint":"read it from offset 0"}}'
        gone = b"HTTP/1.1 410 Gone\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(refusal), refusal)
        caught_up = b'event: caught-up\ndata: {"next":7,"cursor":"7@3"}\n\n'
        for name, sent, start, cursor in (
            ("after an event", frame(0).replace(b"id: 0\n", b"id: 0@3\n"), 0, b"fromOffset=1%403"),
            ("at the head", caught_up, 7, b"fromOffset=7%403"),
        ):
            with self.subTest(name):
                heads = []

                def handler(sock, head, n, heads=heads, sent=sent):  # type: ignore[no-untyped-def]
                    heads.append(head)
                    sock.sendall(gone if n else STREAM + sent)

                _, f = self.follow(handler, start=start)
                with self.assertRaises(TapedeckError) as caught:
                    list(f)
                self.assertEqual(caught.exception.kind, "replaced")
                self.assertIn(cursor, heads[1])

    def test_a_stream_that_stalls_is_connected_again(self) -> None:
        released = threading.Event()
        self.addCleanup(released.set)

        def handler(sock, _head, n):  # type: ignore[no-untyped-def]
            sock.sendall(STREAM + frame(n))
            if n < 2:
                released.wait()
            else:
                sock.sendall(b"event: end\ndata: {}\n\n")

        errors: list[str] = []
        server, f = self.follow(handler, stall=0.2, on_reconnect=lambda attempt, error: errors.append(error.message))
        self.assertEqual([e.offset for e in f], [0, 1, 2])
        self.assertEqual(server.connections, 3)
        self.assertTrue(all("took too long" in e for e in errors), errors)

    def test_heartbeats_keep_a_stream(self) -> None:
        def handler(sock, _head, n):  # type: ignore[no-untyped-def]
            sock.sendall(STREAM + frame(0))
            for _ in range(8):
                sock.sendall(b": heartbeat\n\n")
                time.sleep(0.1)  # the pace of a server, not a wait for the client
            sock.sendall(frame(1) + b"event: end\ndata: {}\n\n")

        server, f = self.follow(handler, stall=0.5)
        self.assertEqual([e.offset for e in f], [0, 1])
        self.assertEqual(server.connections, 1)

    def test_what_is_not_a_stream_of_events(self) -> None:
        for data, kind in (
            (answer("200 OK", "text/html", b"<html>log in</html>"), "unsupported"),
            (answer("404 Not Found", "text/html", b"<html>no</html>"), "not_found"),
            (STREAM + b"id: 0\ndata: {not json\n\n", "internal"),
            (STREAM + b"id: 0\ndata: [1]\n\n", "internal"),
            (STREAM + b"id: 0\ndata: {}\n\n", "internal"),
            (STREAM + b'id: 7\ndata: {"offset":8,"type":"a"}\n\n', "internal"),
            (STREAM + b'data: {"offset":0,"type":"a"}\n\n', "internal"),
            (STREAM + b"id: 0\ndata: " + b"[" * 100_000 + b"\n\n", "internal"),
            (STREAM + b"id: 0\ndata: " + b"x" * (2 << 20), "too_large"),
            (STREAM + b"data: x\n" * (300 << 10), "too_large"),
        ):
            with self.subTest(data[:120]):
                server, f = self.follow(lambda sock, head, n, d=data: sock.sendall(d))
                with self.assertRaises(TapedeckError) as e:
                    list(f)
                self.assertEqual((e.exception.kind, server.connections), (kind, 1))

    def test_a_proxy_without_its_server(self) -> None:
        def handler(sock, _head, n):  # type: ignore[no-untyped-def]
            if n < 2:
                sock.sendall(answer("502 Bad Gateway", "text/html", b"<html>bad</html>"))
            else:
                sock.sendall(STREAM + frame(0) + b"event: end\ndata: {}\n\n")

        _, f = self.follow(handler)
        self.assertEqual([e.offset for e in f], [0])
