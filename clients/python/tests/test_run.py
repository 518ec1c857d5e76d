"""Recording runs: one terminal event, whatever happens to the program, the server and the user."""

import os
import subprocess
import sys
import threading
import time
import traceback
import unittest

from tapedeck import Cancelled, Client, Run, Session, TapedeckError

from .support import ROOT, Server, ServerCase

TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


def terminals(s: Session, run: Run) -> list[dict]:
    return [e.data for e in s.events(invocation=run.invocation, type=TERMINAL)]


def texts(s: Session, role: str = "assistant") -> list[str]:
    return [m["text"] for m in s.snapshot()["messages"] if m["role"] == role]


class Record(ServerCase):
    def test_a_character_in_two_pieces(self) -> None:
        s = self.client.create()
        with s.run("planner") as run:  # json.loads of what a program in JavaScript has cut
            run.thought("hm \ud83d")
            run.thought("\ude80 so")
            run.text("go \ud83d")
            run.text("\ude80 on \ud83d")
            run.begin_tool("c", "look")
            run.tool_arguments("c", '{"q":"\ud83d')
            run.flush()
            run.tool_arguments("c", '\ude80"}')
            run.tool_result("c", "seen")
        view = s.snapshot()
        self.assertEqual(texts(s), ["go 🚀 on ?"])
        self.assertEqual(([m["text"] for m in view["messages"] if m["role"] == "reasoning"], view["tool_calls"][0]["input"]), (["hm 🚀 so"], {"q": "🚀"}))

    def test_everything_is_recorded(self) -> None:
        s = self.client.create()
        with s.run("Plan a trip", agent="planner", actor="user:ada", model="m-1") as run:
            run.next_turn()
            for n in range(200):
                run.text(f"{n} ")
            run.thought("where?")
            with run.tool("search", {"q": "Bern"}) as call:
                call.result({"hits": 3})
            with self.assertRaises(KeyError), run.tool("broken"):
                raise KeyError("no such tool")
            with run.tool("quiet", id="call_q"):
                pass
            run.plan([("Pack", "in_progress")])
            run.usage(model="m-1", input_tokens=3, output_tokens=4)
            run.custom("acme.progress", 0.5)
            run.text("Done \ud800")
            run.end_message()
            run.text("Really")
        self.assertEqual(run.status, "complete")
        self.assertEqual(texts(s), ["".join(f"{n} " for n in range(200)), "Done ?", "Really"])
        self.assertEqual(texts(s, "user"), ["Plan a trip"])
        self.assertEqual(texts(s, "reasoning"), ["where?"])
        calls = {c["name"]: c for c in s.snapshot()["tool_calls"]}
        self.assertEqual((calls["search"]["input"], calls["search"]["result"]["text"]), ({"q": "Bern"}, '{"hits": 3}'))
        self.assertEqual((calls["broken"]["status"], calls["quiet"]["status"]), ("failed", "complete"))
        self.assertEqual(len(terminals(s, run)), 1)
        self.assertEqual(s.summary()["tokens"]["input"], 3)
        deltas = [e for e in s.events(type="TEXT_MESSAGE_CONTENT")]
        self.assertLess(len(deltas), 100)  # deltas are sent in batches
        self.assertEqual({e.actor for e in deltas}, {"agent:planner"})

    def test_a_step_is_repeated(self) -> None:
        s = self.client.create()
        with s.run("x") as run:
            with run.tool("look") as call:
                call.result("seen")
            run.text("Hel")
            run.begin_tool("call_lost", "lost")
            run.attempt("the model broke off")
            run.text("Hello")
            run.attempt()
            run.text("Hello again")
        self.assertEqual((run.status, texts(s)), ("complete", ["Hello again"]))
        snapshot = s.snapshot()
        self.assertEqual([c["name"] for c in snapshot["tool_calls"]], ["look"])
        self.assertEqual([r["attempt"] for r in snapshot["runs"][0]["retries"]], [2, 3])
        self.assertEqual(snapshot["runs"][0]["retries"][0]["reason"], "the model broke off")
        self.assertEqual(len(list(s.events(type="attempt.superseded"))), 2)

    def test_an_exception_fails_the_run(self) -> None:
        s = self.client.create()
        with self.assertRaises(ZeroDivisionError), s.run("x") as run:
            run.text("half")
            1 / 0
        self.assertEqual([(t["message"], t["code"]) for t in terminals(s, run)], [("division by zero", "ZeroDivisionError")])
        self.assertEqual((run.status, s.info()["status"]), ("failed", "failed"))
        self.assertEqual(texts(s), ["half"])

    def test_ctrl_c_cancels_the_run(self) -> None:
        s = self.client.create()
        with self.assertRaises(KeyboardInterrupt), s.run("x") as run:
            raise KeyboardInterrupt
        self.assertEqual([t["outcome"]["type"] for t in terminals(s, run)], ["cancelled"])
        self.assertTrue(s.info()["resumable"])

    def test_ends_that_are_named(self) -> None:
        s = self.client.create()
        with s.run("x") as run:
            run.finish({"ok": True})
            with self.assertRaises(TapedeckError):
                run.text("late")
        with s.run("x") as failed:
            failed.fail("no money", code="budget")
        with self.assertRaises(TapedeckError), s.run("x") as bad:
            bad.finish(object())
        self.assertEqual(terminals(s, run)[0]["result"], {"ok": True})
        self.assertEqual(terminals(s, failed)[0]["code"], "budget")
        self.assertEqual([len(terminals(s, r)) for r in (run, failed, bad)], [1, 1, 1])

    def test_a_cancel_is_heard(self) -> None:
        s = self.client.create()
        called = threading.Event()
        with self.assertRaises(Cancelled), s.run("x", on_cancel=called.set) as run:
            run.text("first")
            run.flush()
            s.cancel(run.invocation)
            self.assertTrue(run.wait_cancelled(10))
            self.assertTrue(called.wait(10))
            self.assertTrue(run.cancelled)
            run.text("second")
        self.assertEqual((run.status, len(terminals(s, run)), texts(s)), ("cancelled", 1, ["first"]))

    def test_a_task_is_taken_after_what_was_said(self) -> None:
        s = self.client.create()
        with s.run("x", agent="py") as run:
            run.text("before")
            waiting = s.task("And?", when="queue")
            taken = run.take(waiting["input_id"])
            run.text("after")
        said = [(m["role"], m["text"]) for m in s.snapshot()["messages"]]
        self.assertEqual(said, [("user", "x"), ("assistant", "before"), ("user", "And?"), ("assistant", "after")])
        self.assertEqual(taken["message"]["content"], "And?")

    def test_an_error_that_is_raised_again_does_not_grow(self) -> None:
        s = self.client.create()
        frames = set()
        with self.assertRaises(Cancelled), s.run("x") as run:
            s.cancel(run.invocation)
            self.assertTrue(run.wait_cancelled(10))
            for _ in range(4):
                try:
                    run.flush()
                except Cancelled as e:
                    frames.add(len(traceback.extract_tb(e.__traceback__)))
            run.flush()
        self.assertEqual(len(frames), 1)

    def test_a_rewind_cancels_the_run(self) -> None:
        s = self.client.create()
        with self.assertRaises(Cancelled), s.run("x") as run:
            s.rewind(before_invocation=run.invocation)
        self.assertEqual(len(terminals(s, run)), 1)

    def test_a_cancel_at_the_last_moment(self) -> None:
        """The follower has not heard of the cancel; the refused append says it."""
        s = self.client.create()
        run = s.run("x")
        with self.assertRaises(Cancelled), run:
            run._follower.close()
            s.cancel(run.invocation)
        self.assertTrue(run.cancelled)
        self.assertEqual(len(terminals(s, run)), 1)

    def test_a_cancel_while_a_call_waits_for_space(self) -> None:
        s = self.client.create()
        with self.assertRaises(Cancelled), s.run("x") as run:
            threading.Timer(0.1, s.cancel, (run.invocation,)).start()
            while True:
                run.text("x" * 500_000)
        self.assertEqual(len(terminals(s, run)), 1)

    def test_a_question_is_answered(self) -> None:
        s = self.client.create()
        with s.run("x") as run:
            def answer() -> None:
                for e in s.follow(run.offset, type="permission.requested"):
                    s.answer(e.data["id"], "reject", offset=e.offset)
                    return

            t = threading.Thread(target=answer)
            t.start()
            self.assertEqual(run.ask("May I?"), "reject")
            t.join()
            self.assertIsNone(run.ask("And now?", timeout=0.05))
            with self.assertRaises(TapedeckError):
                run.event("a b", {})
            run.text("I can still speak")
        self.assertEqual(texts(s), ["I can still speak"])

    def test_a_busy_thread_is_refused(self) -> None:
        s = self.client.create()
        with s.run("x"):
            with self.assertRaises(TapedeckError) as e, s.run("y"):
                pass
            self.assertEqual(e.exception.kind, "conflict")
            with s.run("y", thread="other") as run:
                run.text("side by side")
        self.assertEqual(s.info()["status"], "complete")

    def test_a_deleted_session(self) -> None:
        s = self.client.create()
        with self.assertRaises(TapedeckError), s.run("x") as run:
            s.delete()
            run.flush()
            run.text("nobody reads it")
            run.flush()
        self.assertFalse([t for t in threading.enumerate() if t.name == "tapedeck-outbox" and t.is_alive()])


class Kill(unittest.TestCase):
    def test_a_run_survives_a_kill_of_the_server(self) -> None:
        server = Server()
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        s = client.create()
        words = [f"w{n} " for n in range(400)]
        with s.run("x", agent="py") as run:
            for n, word in enumerate(words):
                run.text(word)
                if n in (100, 300):
                    restart = threading.Thread(target=server.restart)
                    restart.start()
                    run.flush()  # some of it was sent while the server was killed
                    restart.join()
        self.assertEqual((texts(s), run.status, len(terminals(s, run))), (["".join(words)], "complete", 1))

    def test_a_server_that_stays_away(self) -> None:
        server = Server()
        self.addCleanup(server.stop)
        client = Client(server.url)
        self.addCleanup(client.close)
        s = client.create()
        with self.assertRaises(TapedeckError) as e, s.run("x", give_up=0.5) as run:
            server.kill()
            run.text("lost")
        self.assertEqual((e.exception.kind, run.status), ("unavailable", "interrupted"))
        server.start()
        with self.assertRaises(ValueError) as v, s.run("y", thread="b", give_up=0.5) as run:
            server.kill()
            raise ValueError("mine")
        self.assertTrue(any("was not recorded" in n for n in v.exception.__notes__))


class Lease(ServerCase):
    flags = ("--lease", "2s")

    def test_a_silent_run_keeps_its_lease(self) -> None:
        s = self.client.create()
        silent = threading.Event()
        with s.run("x", lease=1) as run:
            run.text("hm")
            run.flush()
            head = s.info()["head"]
            silent.wait(5)  # five leases
            self.assertEqual(s.info()["head"], head)
        self.assertEqual(run.status, "complete")

    def test_the_run_of_a_dead_program_is_taken_over(self) -> None:
        s = self.client.create()
        code = "import sys, tapedeck\nwith tapedeck.Client(sys.argv[1]).session(sys.argv[2]).run('x', lease=1) as run:\n    run.text('half')\n    run.flush()\n    print('begun', flush=True)\n    sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", code, self.server.url, s.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")}) as program:
            assert program.stdout is not None
            self.assertEqual(program.stdout.readline(), "begun\n")
            with self.assertRaises(TapedeckError) as busy, s.run("y"):
                pass
            self.assertEqual(busy.exception.kind, "conflict")
            program.kill()
        begun = time.monotonic()
        ended = next(e for e in s.follow(0, until="terminal") if e.type == "RUN_ERROR")
        self.assertEqual(ended.data["code"], "lease_expired")
        self.assertLess(time.monotonic() - begun, 15)
        with s.run("y") as run:
            run.text("again")
        self.assertEqual(run.status, "complete")

    def test_a_lease_that_ends_is_heard(self) -> None:
        s = self.client.create()
        with self.assertRaises(TapedeckError) as e, s.run("x", lease=600) as run:
            for _ in s.follow(run.offset, until="terminal", invocation=run.invocation):
                pass
        self.assertEqual((e.exception.kind, run.status, len(terminals(s, run))), ("conflict", "interrupted", 1))
