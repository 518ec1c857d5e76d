"""Workflows against the real server."""

import unittest

from tapedeck import TapedeckError
from tapedeck.aio import AsyncClient

from .support import ROOT, Server, ServerCase

ORDER = """<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:tapedeck="https://tapedeck.dev/bpmn" targetNamespace="t">
<message id="M" name="paid"/>
<process id="Order" name="An order" isExecutable="true">
<startEvent id="S"><extensionElements><tapedeck:form><tapedeck:field id="item" required="true"/></tapedeck:form></extensionElements></startEvent>
<receiveTask id="Wait" messageRef="M"/>
<serviceTask id="Thank" tapedeck:agent="hello" tapedeck:prompt="{{ item }}" tapedeck:output="thanks"/>
<userTask id="Send" name="Send it?"><extensionElements><tapedeck:form>
<tapedeck:field id="count" type="integer" required="true" max="5"/></tapedeck:form></extensionElements></userTask>
<endEvent id="E"/>
<sequenceFlow id="F1" sourceRef="S" targetRef="Wait"/>
<sequenceFlow id="F2" sourceRef="Wait" targetRef="Thank"/>
<sequenceFlow id="F3" sourceRef="Thank" targetRef="Send"/>
<sequenceFlow id="F4" sourceRef="Send" targetRef="E"/>
</process>
</definitions>
"""


class WorkflowCase(ServerCase):
    def test_library(self) -> None:
        w = self.client.workflows
        self.assertEqual(w.list(), [])
        first = w.put("order", ORDER)
        self.assertEqual((first["process"], first["title"], first["fields"][0]["id"]), ("Order", "An order", "item"))
        second = w.put("order", ORDER.replace("Send it?", "Ship it?").encode())
        self.assertEqual([v["digest"] for v in w.list()], [second["digest"]])
        self.assertEqual(w.get("order", version=first["digest"])["bpmn"], ORDER)
        self.assertEqual([v["digest"] for v in w.get("order")["versions"]], [second["digest"], first["digest"]])
        self.assertEqual(w.check(name="order", agents={"Thank": "nobody"})["unmet"][0]["element"], "Thank")
        for call in (lambda: w.put("order", "<x/>"), lambda: w.check(ORDER, name="order"), lambda: w.run(name="order"),
                     lambda: w.run(ORDER, process="Other", variables={"item": "tea"})):
            with self.assertRaises(TapedeckError) as e:
                call()
            self.assertEqual(e.exception.kind, "invalid")
        w.delete("order")
        with self.assertRaises(TapedeckError) as e:
            w.get("a/../order")
        self.assertEqual(e.exception.kind, "not_found")

    def test_run(self) -> None:
        started = self.client.workflows.run(ORDER, process="Order", variables={"item": "tea"}, title="Tea", actor="user:ada")
        s = self.client.session(started["session_id"])
        self.assertEqual(s.info()["title"], "Tea")
        sent = s.message("paid", variables={"price": 3}, actor="user:ada")
        self.assertEqual(sent["invocation_id"], started["invocation_id"])
        for event in s.follow(started["offset"], type="permission.requested"):
            asked = event.data["id"]
            break
        self.assertEqual([p["id"] for p in s.permissions()], [asked])
        state = s.workflow()
        assert state is not None
        waits = [wait for a in state["activations"] for wait in a.get("waits", ())]
        self.assertEqual([(wait["element"], wait["for"], wait.get("permission")) for wait in waits], [("Send", "user", asked)])
        with self.assertRaises(TapedeckError) as e:
            s.answer(asked, "submit", input={"count": 9})
        self.assertEqual(e.exception.kind, "invalid")
        self.assertEqual(s.answer(asked, "submit", input={"count": 2})["option"], "submit")
        for _ in s.follow(started["offset"], until="terminal", invocation=started["invocation_id"]):
            pass
        state = s.workflow()
        assert state is not None
        self.assertEqual((state["status"], state["outcome"]), ("complete", "completed"))
        self.assertEqual((state["variables"]["price"], state["variables"]["count"]), (3, 2))
        self.assertTrue(state["variables"]["thanks"])
        early = s.workflow(at=state["offset"] + 1)
        assert early is not None
        self.assertEqual((early["elements"], early["variables"]["item"]), ([], "tea"))
        self.assertNotIn("thanks", early["variables"])
        self.assertIsNone(self.client.create().workflow())
        with self.assertRaises(TapedeckError) as e:
            s.message("paid")
        self.assertEqual(e.exception.kind, "conflict")


class AsyncWorkflowCase(unittest.IsolatedAsyncioTestCase):
    async def test_run(self) -> None:
        server = Server()
        self.addCleanup(server.stop)
        async with AsyncClient(server.url) as client:
            await client.workflows.put("order", ORDER)
            self.assertEqual([v["name"] for v in await client.workflows.list()], ["order"])
            started = await client.workflows.run(name="order", variables={"item": "tea"})
            s = client.session(started["session_id"])
            await s.message("paid")
            async with s.follow(started["offset"], type="permission.requested") as events:
                async for _ in events:
                    break
            await s.answer((await s.permissions())[0]["id"], "submit", input={"count": 1})
            async for _ in s.follow(started["offset"], until="terminal", invocation=started["invocation_id"]):
                pass
            state = await s.workflow()
            assert state is not None
            self.assertEqual(state["variables"]["count"], 1)
            await client.workflows.delete("order")


class ExampleCase(ServerCase):
    def test_the_example_of_the_docs_can_run(self) -> None:
        about = self.client.workflows.check((ROOT / "docs/workflows/review.bpmn").read_bytes(), agents={"draft": "hello"})
        self.assertEqual(about["tasks"][0]["agent"], "hello")
