"""Recording the streams of an ASGI application."""

import asyncio
import json
import unittest

from tapedeck import Client
from tapedeck.asgi import Record

from .support import Server

HEADERS = [(b"content-type", b"text/event-stream"), (b"x-vercel-ai-ui-message-stream", b"v1")]
CHUNKS = [
    {"type": "start", "messageId": "m"}, {"type": "start-step"},
    {"type": "reasoning-start", "id": "r"}, {"type": "reasoning-delta", "id": "r", "delta": "hm"}, {"type": "reasoning-end", "id": "r"},
    {"type": "tool-input-start", "toolCallId": "c1", "toolName": "search"},
    {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"q":1}'},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "search", "input": {"q": 1}},
    {"type": "tool-output-available", "toolCallId": "c1", "output": {"hits": 2}}, {"type": "finish-step"}, {"type": "start-step"},
    {"type": "text-delta", "id": "0", "delta": "wrong"}, {"type": "tool-input-start", "toolCallId": "c2", "toolName": "wrong"},
    {"type": "reset-step"},
    {"type": "text-start", "id": "0"}, {"type": "text-delta", "id": "0", "delta": "Hel"}, {"type": "text-delta", "id": "0", "delta": "lo"},
    {"type": "text-end", "id": "0"}, {"type": "data-weather", "data": {"c": 3}}, {"type": "data-x", "data": 1, "transient": True},
    {"type": "text-delta", "id": 7}, {"type": "tool-input-delta", "toolCallId": "unknown", "inputTextDelta": "x"},
    {"type": "finish-step"}, {"type": "finish"},
]


def stream(chunks: list) -> bytes:
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


class Browser:
    """The ASGI server's side of one request."""

    def __init__(self, session: str, **more: object) -> None:
        message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Where is Bern?"}]}
        self.body = json.dumps({"id": session, "messages": [message], "trigger": "submit-message", **more}).encode()
        self.sent: list[dict] = []
        self.disconnected = asyncio.Event()
        self.received = asyncio.Event()
        self._asked = 0

    async def receive(self) -> dict:
        self._asked += 1
        if self._asked <= 2:
            half = len(self.body) // 2
            return {"type": "http.request", "body": self.body[:half] if self._asked == 1 else self.body[half:], "more_body": self._asked == 1}
        await self.disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        if self.disconnected.is_set():
            raise OSError("the browser has disconnected")
        self.sent.append(message)
        if message.get("body"):
            self.received.set()

    def got(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent)

    async def call(self, app) -> None:  # type: ignore[no-untyped-def]
        await app({"type": "http", "method": "POST", "path": "/chat", "headers": []}, self.receive, self.send)


async def read_body(receive) -> None:  # type: ignore[no-untyped-def]
    while (await receive()).get("more_body"):
        pass


def app_of(pieces: list[bytes], headers=HEADERS, before_last=None, error=None):  # type: ignore[no-untyped-def]
    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        await read_body(receive)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces[:-1]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if before_last is not None:
            await before_last(receive)
        if error is not None:
            raise error
        await send({"type": "http.response.body", "body": pieces[-1], "more_body": False})

    return app


class Asgi(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)
        self.errors: list[Exception] = []

    def record(self, app, **options):  # type: ignore[no-untyped-def]
        return Record(app, self.client, agent="py", on_error=self.errors.append, **options)

    async def test_a_stream_is_recorded_and_passed_on_unchanged(self) -> None:
        data = stream(CHUNKS)
        pieces = [data[i:i + 37] for i in range(0, len(data), 37)]  # cut anywhere
        browser = Browser("chat-1")
        await browser.call(self.record(app_of(pieces), owner="ada"))
        self.assertEqual((browser.got(), self.errors), (data, []))
        s = self.client.session("chat-1")
        v = s.snapshot()
        self.assertEqual([(m["role"], m["text"]) for m in v["messages"] if m["role"] != "tool"],
                         [("user", "Where is Bern?"), ("reasoning", "hm"), ("assistant", "Hello")])
        self.assertEqual((v["tool_calls"][0]["input"], v["tool_calls"][0]["result"]["text"]), ({"q": 1}, '{"hits": 2}'))
        self.assertEqual((s.info()["status"], s.info()["owner"], s.info()["title"]), ("complete", "ada", "Where is Bern?"))
        self.assertEqual([e.data["name"] for e in s.events(type="CUSTOM")], ["ai-sdk.data-weather", "ai-sdk.text-delta"])

    async def test_a_browser_that_disconnects(self) -> None:
        """The application stops when it hears of a disconnect, as Starlette's do."""
        browser = Browser("chat-2")
        heard = []

        async def app(scope, receive, send):  # type: ignore[no-untyped-def]
            await read_body(receive)
            listener = asyncio.create_task(receive())
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            for chunk in CHUNKS:
                await send({"type": "http.response.body", "body": stream([chunk])[:-len(stream([]))], "more_body": True})
                if chunk == CHUNKS[3]:
                    browser.disconnected.set()
                await asyncio.sleep(0.01)  # the pace of a model
                if listener.done():
                    heard.append(listener.result()["type"])
                    return
            listener.cancel()
            await send({"type": "http.response.body", "body": stream([]), "more_body": False})

        await browser.call(self.record(app))
        s = self.client.session("chat-2")
        self.assertEqual((heard, s.info()["status"], self.errors), ([], "complete", []))
        self.assertEqual([m["text"] for m in s.snapshot()["messages"] if m["role"] == "assistant"], ["Hello"])

    async def test_a_server_that_cancels_the_request(self) -> None:
        browser = Browser("chat-3")
        go = asyncio.Event()

        async def wait(receive) -> None:  # type: ignore[no-untyped-def]
            await go.wait()

        record = self.record(app_of([b"", stream(CHUNKS)], before_last=wait))
        request = asyncio.create_task(browser.call(record))
        while not browser.sent:
            await asyncio.sleep(0)
        request.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await request
        go.set()
        await asyncio.gather(*record._working)
        self.assertEqual(self.client.session("chat-3").info()["status"], "complete")

    async def test_a_cancel_on_a_screen_stops_the_application(self) -> None:
        for heard in (True, False):
            with self.subTest(heard):
                id = f"chat-cancel-{heard}"
                self.client.create(id)
                browser = Browser(id)

                async def until_stopped(receive) -> None:  # type: ignore[no-untyped-def]
                    def cancel() -> None:
                        s = self.client.session(id)
                        for e in s.follow(type="RUN_STARTED"):
                            s.cancel(e.invocation)
                            return

                    await asyncio.to_thread(cancel)
                    if heard:
                        self.assertEqual((await receive())["type"], "http.disconnect")
                        raise RuntimeError("the application stops")
                    await asyncio.Event().wait()

                first = b'data: {"type":"text-delta","id":"0","delta":"x"}\n\n'
                call = browser.call(self.record(app_of([first, b""], before_last=until_stopped), grace=0.2))
                if heard:
                    with self.assertRaises(RuntimeError):
                        await call
                else:
                    await call
                self.assertTrue(browser.got().endswith(b'data: {"type":"abort"}\n\ndata: [DONE]\n\n'))
                self.assertEqual((self.client.session(id).info()["status"], self.errors), ("cancelled", []))

    async def test_ends_of_a_stream(self) -> None:
        first = {"type": "text-delta", "id": "0", "delta": "x"}
        for n, (chunks, error, status) in enumerate((
            ([first, {"type": "error", "errorText": "no money"}], None, "failed"), ([first, {"type": "abort"}], None, "cancelled"),
            ([first], ValueError("broken"), "failed"), ([], None, "complete"),
        )):
            browser = Browser(f"end-{n}")
            record = self.record(app_of([stream(chunks), b""], error=error))
            if error is None:
                await browser.call(record)
            else:
                with self.assertRaises(ValueError):
                    await browser.call(record)
            self.assertEqual(self.client.session(f"end-{n}").info()["status"], status)

    async def test_an_error_of_the_recording_does_not_change_the_answer(self) -> None:
        data = stream(CHUNKS)
        for id in ("a b", "chat-5"):
            if id == "chat-5":
                self.client.create(id).close()
            browser = Browser(id)
            await browser.call(self.record(app_of([data])))
            self.assertEqual(browser.got(), data)
        self.assertEqual(len(self.errors), 2)

    async def test_other_answers_are_not_recorded(self) -> None:
        browser = Browser("chat-6")
        heard = []

        async def hear(receive) -> None:  # type: ignore[no-untyped-def]
            browser.disconnected.set()
            heard.append((await receive())["type"])

        with self.assertRaises(OSError):
            await browser.call(self.record(app_of([b"{}", b""], [(b"content-type", b"application/json")], before_last=hear)))
        self.assertEqual((heard, list(self.client.sessions(q="chat-6"))), (["http.disconnect"], []))
        browser = Browser("chat-7")
        await browser.call(self.record(app_of([stream([])]), session=lambda scope, body: None))
        self.assertEqual((list(self.client.sessions(q="chat-7")), self.errors), ([], []))
