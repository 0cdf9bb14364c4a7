"""The queue: who leaves frees the work, who waits gets a turn, and work has an end."""

from __future__ import annotations

import asyncio
import json
import threading

import httpx
import pytest

import raison
from raison.core import progress
from raison.core.errors import InputError
from raison.web.jobs import Busy, Result, Workers
from tests.helpers.serving import served
from tests.helpers.web_client import TEXT, ask, until


def test_who_leaves_frees_the_work(models, monkeypatch):
    """A client that is killed in the middle of a long request: its worker is free long before the request is done."""
    texts_asked = []
    slowly = models["slow"].function

    def counting(texts):
        texts_asked.extend(texts)
        return slowly(texts)

    monkeypatch.setattr(models["slow"], "function", counting)
    with served(models, workers=1, waiting=1) as client:
        workers = client.workers

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=client.base_url, timeout=300) as one:
                body = {
                    "model": "slow",
                    "text": " ".join(map(str, range(99))),
                    "methods": ["lime(samples=2000)"],
                    "units": "token",
                }
                task = asyncio.create_task(one.post("/api/explain", json=body))
                await asyncio.sleep(1.0)
                assert workers.running and not task.done()
                task.cancel()

        asyncio.run(leave())
        until(lambda: not workers.running)
        assert len(texts_asked) < 1200  # of 2000
        assert ask(client, "predict", model="bert", text=TEXT)["text"]


def test_who_leaves_switches_no_method_off(models):
    """The end of a request is no failure of the method that it ended: others may go on asking for that method."""
    with served(models, workers=1) as client:
        long = {
            "model": "slow",
            "text": " ".join(map(str, range(99))),
            "methods": ["lime(samples=2000)"],
        }

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=client.base_url, timeout=300) as one:
                task = asyncio.create_task(one.post("/api/explain", json=long))
                await asyncio.to_thread(until, lambda: client.workers.running)
                await asyncio.sleep(0.5)
                task.cancel()

        asyncio.run(leave())
        until(lambda: not client.workers.running)
        found = ask(client, "explain", model="slow", text="two words", methods=["lime(samples=10)"])
        assert found["explanations"]


def test_progress_is_streamed_and_work_has_an_end(models):
    with served(models, seconds=1.5) as client:
        body = {
            "model": "slow",
            "text": " ".join(map(str, range(99))),
            "methods": ["lime(samples=2000)"],
            "units": "token",
        }
        with client.stream("POST", "/api/explain", json=body) as response:
            told = [json.loads(line) for line in response.iter_lines()]
        assert response.headers["content-type"].startswith("application/x-ndjson")
        assert any(each.get("progress", {}).get("total") for each in told)
        assert told[-1]["status"] == 408 and "longer than the 1.5 s" in told[-1]["error"]


def test_a_full_queue_refuses():
    async def fill() -> None:
        workers = Workers(1, 1, 10)
        hold = threading.Event()
        jobs = [workers.submit(hold.wait)]
        await asyncio.sleep(0.1)
        jobs.append(workers.submit(lambda: 1))
        with pytest.raises(Busy, match="try again in") as refused:
            workers.submit(lambda: 2)
        assert refused.value.seconds >= 1
        workers.leave(jobs[1])  # who leaves makes room at once
        last = workers.submit(lambda: 3)
        hold.set()
        assert await asyncio.wait_for(last.events.get(), 5) == Result(3)
        assert jobs[1].events.empty()
        workers.close()

    asyncio.run(fill())


def test_stoppable_work_ends_before_the_next_pass(models):
    seen = []

    def check() -> None:
        seen.append(1)
        if len(seen) > 2:
            raise InputError("enough")

    with pytest.raises(InputError, match="enough"), progress.stoppable(check):
        raison.rationalize(models["gpt2"], TEXT, target="all")
    raison.explain(models["gpt2"], TEXT)  # and nothing of it is left
    seen.clear()
    with pytest.raises(InputError, match="enough"), progress.stoppable(check):
        raison.explain(
            models["bert"], TEXT, "alti"
        )  # which has one pass, and much to count behind it


def test_a_full_queue_of_one_client_leaves_another_its_turn(models):
    long = {
        "model": "slow",
        "text": " ".join(map(str, range(40))),
        "methods": ["lime(samples=400)"],
        "units": "token",
    }
    with served(models, workers=1, waiting=3) as client:
        codes: list[int] = []

        def hog() -> None:
            codes.append(
                httpx.post(f"{client.base_url}/api/explain", json=long, timeout=300).status_code
            )

        threads = [threading.Thread(target=hog) for _ in range(12)]
        for thread in threads:
            thread.start()
        until(lambda: len(codes) >= 12 - 4)
        assert client.get("/api/about").status_code == 200  # which gives it a session
        for _ in range(5):
            assert (
                client.post("/api/predict", json={"model": "bert", "text": TEXT}).status_code == 200
            )
        for thread in threads:
            thread.join()
        assert codes.count(429) == 12 - 4 and codes.count(200) == 4


def test_clients_take_turns_and_share_a_full_queue():
    one, two, three = ("a", "1"), ("a", "2"), ("b", "")

    async def share() -> None:
        workers = Workers(1, 4, 10)
        hold, order = threading.Event(), []

        def work(name: str):
            return lambda: hold.wait() and order.append(name)

        first = [workers.submit(work("one"), one) for _ in range(5)]
        until(lambda: len(workers.running) == 1)
        with pytest.raises(Busy):
            workers.submit(work("one"), one)
        second = [workers.submit(work("two"), two)]
        until(lambda: len(workers.running) == 2)  # of another client it starts at once
        second.append(workers.submit(work("two"), two))
        with pytest.raises(Busy):
            workers.submit(work("two"), two)  # it has its half
        third = workers.submit(work("three"), three)
        with pytest.raises(Busy):
            workers.submit(work("three"), three)  # it has its third
        hold.set()
        for job in (*first, *second, third):
            assert isinstance(await asyncio.wait_for(job.events.get(), 5), Result)
        assert order.index("three") < 4 and sorted(order) == ["one"] * 5 + ["three"] + ["two"] * 2
        until(lambda: not workers.turns)  # clients that are done are not remembered
        workers.close()

    asyncio.run(share())
