"""The client for asyncio."""

import asyncio
import gc
import threading
import unittest

from tapedeck import Cancelled, TapedeckError
from tapedeck.aio import AsyncClient

from .support import Hostile, Server


class Async(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self) -> None:
        self.client = AsyncClient(self.server.url)
        self.addCleanup(self.client.close)

    async def test_verbs(self) -> None:
        s = await self.client.create(title="Trip", owner="aio")
        self.assertEqual((await s.append({"type": "acme.note"}))["first"], 1)
        self.assertEqual((await s.producer().append({"type": "acme.note"}))["first"], 2)
        self.assertEqual([e.offset async for e in s.events()], [0, 1, 2])
        self.assertEqual([i["id"] async for i in self.client.sessions(owner="aio")], [s.id])
        fork = await s.fork(2)
        self.assertEqual((await fork.info())["fork_at"], 2)
        with self.assertRaises(TapedeckError) as e:
            await self.client.session("nothing").snapshot()
        self.assertEqual(e.exception.kind, "not_found")
        self.assertTrue(await self.client.agents())

    async def test_many_followers_do_not_take_the_threads_of_others(self) -> None:
        s = await self.client.create()
        async with asyncio.TaskGroup() as group:
            async def follow() -> list[int]:
                return [e.offset async for e in s.follow()]

            tasks = [group.create_task(follow()) for _ in range(50)]
            await s.append({"type": "acme.note"})
            await s.close()
        self.assertEqual([t.result() for t in tasks], [[0, 1, 2]] * 50)

    async def test_a_follower_that_is_left_ends_its_thread(self) -> None:
        s = await self.client.create()
        async with s.follow() as events:
            async for _ in events:
                break
        async for _ in s.follow():
            break
        gc.collect()
        for t in threading.enumerate():
            if t.name == "tapedeck-iterate":
                await asyncio.to_thread(t.join, 10)
                self.assertFalse(t.is_alive())

    async def test_a_cancel_of_the_task_closes_the_connection(self) -> None:
        closed, got = threading.Event(), threading.Event()

        def silent(sock, head, n):  # type: ignore[no-untyped-def]
            got.set()
            sock.recv(1)
            closed.set()

        server = Hostile(silent)
        self.addCleanup(server.stop)
        client = AsyncClient(server.url)
        task = asyncio.create_task(client.agents())
        await asyncio.to_thread(got.wait, 10)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertTrue(await asyncio.to_thread(closed.wait, 10))

    async def test_run(self) -> None:
        s = await self.client.create()
        async with s.run("x", agent="py") as run:
            await run.next_turn()
            await run.text("Hello")
            async with run.tool("t", {"a": 1}) as call:
                await call.result("ok")
            await asyncio.gather(*(run.custom("acme.n", n) for n in range(20)), run.usage(input_tokens=1), run.text(" you"))
        self.assertEqual(run.status, "complete")
        self.assertEqual((await s.info())["status"], "complete")

    async def test_a_cancel_on_a_screen_cancels_the_task(self) -> None:
        s = await self.client.create()
        with self.assertRaises(Cancelled):
            async with s.run("x") as run:
                await s.cancel(run.invocation)
                await asyncio.Event().wait()  # the answer of a model that never comes
        self.assertEqual(asyncio.current_task().cancelling(), 0)
        with self.assertRaises(Cancelled):
            async with s.run("x", cancel_task=False) as run:
                await s.cancel(run.invocation)
                await asyncio.to_thread(run.sync.wait_cancelled, 10)
                await run.text("late")
        self.assertEqual(run.status, "cancelled")

    async def test_a_task_that_is_cancelled_records_it(self) -> None:
        s = await self.client.create()
        begun = asyncio.Event()

        async def agent() -> None:
            async with s.run("x") as run:
                await run.text("half")
                begun.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(agent())
        await begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual((await s.info())["status"], "cancelled")

    async def test_a_question_that_is_left(self) -> None:
        s = await self.client.create()
        async with s.run("x") as run:
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await run.ask("May I?")
        self.assertEqual(run.status, "complete")
