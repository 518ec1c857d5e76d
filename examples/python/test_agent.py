"""The example in a process of its own, with the real program. `make python` runs it."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from tapedeck import Client, Session
from tests.support import Server

HERE = Path(__file__).resolve().parent
ANSWER = "It is 21 degrees. " + "And the sun shines. " * 10
PATIENCE = 60.0


class Agent(unittest.TestCase):
    def setUp(self) -> None:
        self.server = Server()
        self.addCleanup(self.server.stop)
        self.client = Client(self.server.url)
        self.addCleanup(self.client.close)

    def begin(self, *args: str, pace: str = "0.06") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "agent.py"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TAPEDECK_URL": self.server.url, "PACE": pace},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell lets jobs in the background ignore it
        self.addCleanup(process.kill)
        return process

    def session(self, process: subprocess.Popen[str]) -> Session:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        self.assertTrue(address.startswith(self.server.url + "/s/"), address)
        return self.client.session(address.rsplit("/", 1)[1])

    def until_said(self, session: Session, words: str) -> None:
        said = ""
        with session.follow(type="TEXT_MESSAGE_CONTENT") as events:
            for event in events:
                if event.type == "TEXT_MESSAGE_CONTENT":
                    said += event.data["delta"]
                if words in said:
                    return

    def ended(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        out, err = process.communicate(timeout=PATIENCE)
        return process.returncode, out, err

    def texts(self, session: Session) -> list[tuple[str, str]]:
        return [(m["role"], m["text"]) for m in session.snapshot()["messages"]]

    def test_a_kill_of_the_server_loses_nothing(self) -> None:
        process = self.begin("How warm is it?")
        session = self.session(process)
        self.until_said(session, "degrees")
        self.server.restart()
        self.assertEqual(self.ended(process), (0, ANSWER + "\n", ""))
        self.assertEqual(self.texts(session), [("user", "How warm is it?"), ("assistant", "Let me look. "), ("assistant", ANSWER)])
        snapshot = session.snapshot()
        self.assertEqual([(c["name"], c["status"], c["turn"]) for c in snapshot["tool_calls"]], [("temperature", "complete", 1)])
        self.assertEqual([r["status"] for r in snapshot["runs"]], ["complete"])

        again = self.begin("And now?", session.id)
        self.assertEqual(self.ended(again)[0], 0)
        self.assertEqual(self.texts(session)[3:], [("user", "And now?"), ("assistant", "Let me look. "), ("assistant", ANSWER)])

    def test_a_stop_on_a_screen_ends_the_loop(self) -> None:
        process = self.begin("How warm is it?", pace="0.5")  # the loop does not end before the stop
        session = self.session(process)
        self.until_said(session, "degrees")
        session.cancel()
        code, _, err = self.ended(process)
        self.assertEqual(code, 1)
        self.assertIn("cancelled", err)
        self.assertNotIn("Traceback", err)
        self.assertEqual(session.info()["status"], "cancelled")
        said = self.texts(session)[-1][1]
        self.assertTrue(ANSWER.startswith(said) and "degrees" in said and said != ANSWER, said)

    def test_ctrl_c_cancels_the_run(self) -> None:
        process = self.begin("How warm is it?", pace="0.5")  # the loop does not end before the stop
        session = self.session(process)
        self.until_said(session, "degrees")
        process.send_signal(signal.SIGINT)
        self.assertEqual((self.ended(process)[::2]), (1, "interrupted\n"))
        self.assertEqual(session.info()["status"], "cancelled")

    def test_what_cannot_work_is_said_in_a_sentence(self) -> None:
        code, _, err = self.ended(self.begin())
        self.assertEqual(code, 1)
        self.assertIn("python3 agent.py", err)
        code, _, err = self.ended(self.begin("Hello", "nothing"))
        self.assertIn("there is no session", err)
        self.assertNotIn("Traceback", err)
