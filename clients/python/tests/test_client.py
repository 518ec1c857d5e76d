"""Every verb against the real server."""

import io
import json
import threading
import unittest

from tapedeck import Event, TapedeckError, types

from .support import ROOT, ServerCase


class Verbs(ServerCase):
    def test_session(self) -> None:
        s = self.client.create(title="Trip", owner="ada", agent="hello", labels={"team": "core"}, state={"a": 1})
        self.assertEqual(s.info()["title"], "Trip")
        self.assertIn(s.id, [i["id"] for i in self.client.sessions(labels={"team": "core"}, owner="ada")])
        self.assertEqual(list(self.client.sessions(owner="nobody")), [])
        self.assertEqual(s.rename(title="Bern")["title"], "Bern")
        self.assertEqual(s.view("state")["state"]["value"], {"a": 1})
        self.assertTrue(s.close()["closed"])
        s.delete()
        with self.assertRaises(TapedeckError) as e:
            s.info()
        self.assertEqual((e.exception.kind, e.exception.status), ("not_found", 404))

    def test_sessions_in_pages(self) -> None:
        made = {self.client.create(owner="pages").id for _ in range(5)}
        listed = [i["id"] for i in self.client.sessions(owner="pages", page=2)]
        self.assertEqual((len(listed), set(listed)), (5, made))

    def test_append_and_read(self) -> None:
        s = self.client.create()
        done = s.append({"type": "acme.note", "data": {"text": "ä\u2028"}}, Event("acme.note", {"n": 1}, actor="user:ada", thread="t"))
        self.assertEqual((done["first"], done["last"], done["head"]), (1, 2, 3))
        with self.assertRaises(TapedeckError) as e:
            s.append({"type": "acme.note"}, expect=1)
        self.assertEqual((e.exception.kind, e.exception.head), ("conflict", 3))
        s.append({"type": "acme.note"}, expect=3)
        events = list(s.events(page=2))
        self.assertEqual([v.offset for v in events], [0, 1, 2, 3])
        self.assertEqual((events[1].data, events[2].actor, events[2].thread), ({"text": "ä\u2028"}, "user:ada", "t"))
        self.assertEqual([v.offset for v in s.events(reverse=True, page=3)], [3, 2, 1, 0])
        self.assertEqual([v.offset for v in s.events(reverse=True, start=2)], [1, 0])
        self.assertEqual([v.offset for v in s.events(4)], [])
        self.assertEqual([v.offset for v in s.events(thread="t", type=["acme.note"]) if v.channel != "session"], [2])

    def test_producer(self) -> None:
        s = self.client.create()
        one = s.append({"type": "acme.note"}, producer=("p", 0, 0))
        again = s.append({"type": "acme.note"}, producer=("p", 0, 0))
        self.assertTrue(again["duplicate"])
        self.assertEqual(again["first"], one["first"])
        p = s.producer("p", epoch=1)
        self.assertEqual([p.append({"type": "acme.note"})["first"] for _ in range(3)], [2, 3, 4])
        with self.assertRaises(TapedeckError) as e:
            s.append({"type": "acme.note"}, producer=("p", 0, 1))
        self.assertEqual(e.exception.kind, "forbidden")
        with self.assertRaises(TapedeckError) as e:
            p.append({"type": "session.closed"})
        self.assertEqual(e.exception.kind, "invalid")
        self.assertEqual(p.append({"type": "acme.note"}, expect=5)["first"], 5)

    def test_task(self) -> None:
        self.assertIn("hello", [a["name"] for a in self.client.agents()])
        started = self.client.run("Say hello", agent="hello")
        s = self.client.session(started["session_id"])
        events = list(s.follow(started["offset"], until="terminal", invocation=started["invocation_id"]))
        self.assertEqual(events[-1].type, "RUN_FINISHED")
        self.assertTrue(any(m["role"] == "assistant" for m in s.snapshot()["messages"]))
        self.assertTrue(s.context()["messages"])
        self.assertEqual(s.summary()["final_status"], "complete")
        again = s.task("Count", agent="long", message_id="m1")
        self.assertTrue(s.task("Count", agent="long", message_id="m1")["repeated"])
        next(e for e in s.follow(again["offset"]) if e.type == "TEXT_MESSAGE_CONTENT")
        self.assertEqual(s.cancel()["status"], "cancelled")
        resumed = s.resume("Say hello", agent="hello")
        list(s.follow(resumed["offset"], until="terminal", invocation=resumed["invocation_id"]))
        self.assertEqual(s.info()["status"], "complete")
        replaced = s.task("Say hello", agent="hello", overwrite={"from_offset": again["offset"]})
        list(s.follow(replaced["offset"], until="terminal", invocation=replaced["invocation_id"]))
        self.assertEqual(s.undo(replaced["marker"])["undoes"], replaced["marker"])
        with self.assertRaises(TapedeckError) as e:
            s.cancel(again["invocation_id"])
        self.assertEqual(e.exception.kind, "conflict")

    def test_tasks_that_wait(self) -> None:
        s = self.client.create(agent="long")
        s.task("Count", when="queue")
        first = s.task("Say hello", agent="hello", when="queue")
        second = s.task("Count again", when="steer")
        self.assertEqual((first["status"], second["when"]), ("waiting", "queue"))
        self.assertIn("takes no input", second["note"])
        third = s.task("Never mind", when="queue")
        self.assertEqual(s.move(third["input_id"], first["input_id"])["status"], "waiting")
        self.assertEqual([i["text"] for i in s.inputs()], ["Never mind", "Say hello", "Count again"])
        self.assertEqual(s.withdraw(third["input_id"])["status"], "withdrawn")
        with self.assertRaises(TapedeckError) as e:
            s.withdraw(third["input_id"])
        self.assertIn(first["input_id"], e.exception.hint)
        s.cancel()
        list(s.follow(first["offset"], until="terminal", invocation=first["invocation_id"]))
        next(e for e in s.follow(second["offset"]) if e.type == "RUN_STARTED" and e.invocation == second["invocation_id"])
        self.assertEqual([i["status"] for i in s.inputs()], ["withdrawn", "started", "started"])
        s.task("Last", when="queue")
        self.assertEqual(s.cancel(all=True)["withdrawn"], 1)

    def test_going_back(self) -> None:
        s = self.client.create()
        for n in range(4):
            s.append({"type": "message.added", "data": {"message": {"id": f"m{n}", "role": "user", "content": str(n)}}})
        texts = lambda v: [m["text"] for m in v.snapshot()["messages"]]
        marker = s.rewind(3)["marker"]
        self.assertEqual(texts(s), ["0", "1"])
        s.undo(marker)
        self.assertEqual(texts(s), ["0", "1", "2", "3"])
        s.overwrite(2)
        self.assertEqual(texts(s), ["0"])
        fork, copy = s.fork(3, title="Fork"), s.copy(2)
        self.assertEqual((texts(fork), fork.info()["fork_at"], texts(copy), copy.info()["copy"]), (["0", "1"], 3, ["0"], True))
        s.clear()
        self.assertEqual(texts(s), [])
        self.assertEqual(copy.erase(all=True, reason="test")["events"], 1)
        self.assertEqual(s.erase([(1, 2)])["ranges"], [{"from": 1, "to": 2}])

    def test_exchange_and_search(self) -> None:
        s = self.client.create(title="Zebras")
        s.append({"type": "message.added", "data": {"message": {"id": "m", "role": "user", "content": "quagga"}}})
        self.assertEqual([h["session"] for h in self.client.search("quagga", session=s.id)["hits"]], [s.id])
        file = io.BytesIO()
        s.export(to=file)
        self.assertEqual(file.getvalue(), s.export("ndjson"))
        for data in (file.getvalue(), io.BytesIO(file.getvalue())):
            done = self.client.import_file(data)
            self.assertEqual(self.client.session(done["sessions"][0]).snapshot()["messages"][0]["text"], "quagga")

    def test_bad_input_is_an_error(self) -> None:
        s = self.client.create()
        for call in (
            lambda: self.client.session(""), lambda: self.client.session(".."), lambda: self.client.session("a b\n/x").info(),
            lambda: s.append({"type": "acme.note", "data": {"x": float("nan")}}), lambda: s.append({"type": "a", "data": {"x": "\ud800"}}),
            lambda: s.append({"type": "a", "data": {"x": object()}}), lambda: s.follow(-1), lambda: s.follow(until="later"),
            lambda: list(s.follow(99)), lambda: self.client.create(id="a/b"), lambda: type(self.client)("ftp://x"),
            lambda: type(self.client)("http://user:secret@x"), lambda: type(self.client)("http://x:99999"),
        ):
            with self.assertRaises(TapedeckError) as e:
                call()
            self.assertEqual(e.exception.kind, "invalid", e.exception)
            self.assertNotIn("secret", str(e.exception))

    def test_headers_are_asked_for_each_request(self) -> None:
        asked = []
        client = type(self.client)(self.server.url, headers=lambda: asked.append(1) or {"Authorization": "Bearer x"})
        self.addCleanup(client.close)
        client.agents()
        client.agents()
        self.assertEqual(len(asked), 2)

    def test_threads_share_a_client(self) -> None:
        s = self.client.create()
        errors: list[Exception] = []

        def work() -> None:
            try:
                for _ in range(20):
                    s.append({"type": "acme.note"})
            except Exception as e:
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((errors, s.info()["head"]), ([], 161))


class Types(unittest.TestCase):
    def test_types_have_the_members_of_the_api(self) -> None:
        schemas = json.loads((ROOT / "docs" / "openapi.json").read_text())["components"]["schemas"]
        names = {"SessionInfo": "Session", "CancelledRun": "Cancelled", "RenewedRun": "Renewed", "SessionBudget": "Budget"}
        checked = 0
        for name, t in vars(types).items():
            if not hasattr(t, "__required_keys__"):
                continue
            schema = schemas[names.get(name, name)]
            self.assertEqual(set(t.__annotations__), set(schema["properties"]), name)
            required = {k for k in t.__annotations__ if not str(t.__annotations__[k].__forward_arg__).startswith("NotRequired")}
            self.assertEqual(required, set(schema.get("required", [])), name)
            checked += 1
        self.assertGreater(checked, 10)
