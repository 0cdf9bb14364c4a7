"""The server: the library's answers, whoever asks at the same time; nothing but what it offers, to nobody but whom."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import re
import socket
import threading
import time

import httpx
import numpy as np
import pytest

import raison
from raison.core import progress
from raison.core.errors import InputError
from raison.core.records import Explanation
from raison.runs.driver import run
from raison.runs.spec import RunSpec
from raison.studies.trust import trust
from raison.studies.what_if import heads_of, muted, without
from raison.testing import tiny_hf
from raison.web.guard import Guard, cookie_of
from raison.web.jobs import Busy, Workers
from raison.web.runs import Shelf
from raison.web.settings import Settings
from tests.helpers.serving import served

TEXT = "a lovely film and a warm story"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def models():
    found = {}
    kinds = {
        "bert": ("bert", "classification"),
        "gpt2": ("gpt2", "causal"),
        "qa": ("bert", "qa"),
        "llama": ("llama", "causal"),
    }
    for name, (family, task) in kinds.items():
        hf, tokenizer = tiny_hf(family, task)
        if name == "llama":  # rotary: it reads as far as it is told
            hf = copy.deepcopy(hf)
            hf.config.max_position_embeddings = 512
        model = raison.load(hf, tokenizer)
        model.name = name
        found[name] = model
    found["slow"] = raison.load(slowly, labels=["no", "yes"])
    found["slow"].name = "slow"
    return found


def slowly(texts):
    time.sleep(0.003 * len(texts))
    return [[len(text), 1.0] for text in texts]


@pytest.fixture(scope="module")
def client(models, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    rows = [f"{'a lovely film ' * (n % 3 + 1)}{n}" for n in range(8)] + [SCRIPT]
    (place / "data.csv").write_text("text,label\n" + "\n".join(f"{row},0" for row in rows))
    spec = RunSpec(str(place / "model"), str(place / "data.csv"), ("leave_one_out", "random"), ("comprehensiveness",))
    run(place / "done", spec)
    with served(models, Shelf({"done": str(place / "done")}), waiting=64) as found:
        yield found


def result_of(response) -> dict:
    """The result, whether it came in one piece or as lines."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    last = json.loads(response.text.rstrip("\n").split("\n")[-1])
    assert "result" in last, last
    return last["result"]


def ask(client, path, **body) -> dict:
    return result_of(client.post(f"/api/{path}", json=body))


def same(found: dict, expected: Explanation) -> None:
    read = Explanation.from_dict(found)
    assert read.method == expected.method and read.target == expected.target and read.units == expected.units
    np.testing.assert_array_equal(read.scores, expected.scores)


# -- answers ------------------------------------------------------------------------------------------------------


def test_about_tells_what_can_be_asked(client, models):
    told = client.get("/api/about").json()
    assert [each["name"] for each in told["models"]] == list(models) and told["runs"] == ["done"]
    methods = {each["name"]: each for each in told["methods"]}
    assert {"leave_one_out", "integrated_gradients"} <= methods.keys()
    assert {"name": "heads", "kind": "text", "default": None} not in methods["masked_lrp"]["parameters"]  # a file
    assert "own" not in told["models"][0]["methods"] and "leave_one_out" in told["models"][0]["methods"]
    assert {each["name"] for each in told["searches"]} >= {"greedy", "exact", "refined"}


def test_explanations_are_those_of_the_library(client, models):
    found = ask(client, "explain", model="bert", text=TEXT, methods=["leave_one_out", "integrated_gradients(steps=8)"])
    for each, method in zip(found["explanations"], ("leave_one_out", "integrated_gradients(steps=8)"), strict=True):
        same(each, raison.explain(models["bert"], TEXT, method))
    found = ask(client, "explain", model="bert", text=TEXT, pair="a dull one", units="token", target=0, contrast=1)
    same(
        found["explanations"][0],
        raison.explain(models["bert"], (TEXT, "a dull one"), target=0, contrast=1, units="token"),
    )
    found = ask(client, "rationalize", model="gpt2", text=TEXT, units="token", search="greedy", sufficient="top(k=3)")
    same(found["explanations"][0], raison.rationalize(models["gpt2"], TEXT, "greedy", sufficient="top(k=3)"))
    found = ask(client, "rationalize", model="gpt2", text=TEXT, units="token", target="all")
    assert len(found["explanations"]) == len(raison.rationalize(models["gpt2"], TEXT, target="all")) > 2
    found = ask(
        client, "ground", model="llama", question="who?", passages={"a": "a film", "b": "a story"}, answer="film"
    )
    expected = raison.ground(models["llama"], "who?", {"a": "a film", "b": "a story"}, answer="film")
    same(found["explanations"][0], expected)


def test_copied_python_gives_the_same(client, models, monkeypatch):
    monkeypatch.setattr(raison, "load", lambda name: models[name] if isinstance(name, str) else name)
    asked = [
        ("explain", {"model": "bert", "text": TEXT, "methods": ["leave_one_out"]}),
        (
            "explain",
            {"model": "bert", "text": TEXT, "pair": 'it\'s "dull"\n', "methods": ["random"], "seed": 3, "target": 1},
        ),
        ("explain", {"model": "gpt2", "text": TEXT, "methods": ["gradient_norm"], "units": "token", "target": 2}),
        ("rationalize", {"model": "bert", "text": TEXT, "sufficient": "probability(tau=0.4)", "units": "word"}),
        ("rationalize", {"model": "bert", "text": TEXT, "target": 0}),
        ("rationalize", {"model": "bert", "text": TEXT, "target": 1}),
        ("rationalize", {"model": "gpt2", "text": TEXT, "search": "greedy", "units": "token", "generate": 2}),
        (
            "ground",
            {"model": "llama", "question": "who?", "passages": {"a": "a film", "b": "a story"}, "answer": "film"},
        ),
    ]
    for path, body in asked:
        found = ask(client, path, **body)
        scope: dict = {}
        exec(found["python"][0], scope)  # what the page lets people copy
        told = scope["result"]
        for each, expected in zip(found["explanations"], told if isinstance(told, list) else [told], strict=True):
            same(each, expected)


def test_of_a_long_text_the_page_tells_what_was_read(client, models):
    text = "a lovely film " * 200
    found = ask(client, "explain", model="bert", text=text, methods=["gradient_norm"])
    (explanation,) = found["explanations"]
    assert explanation["encoding"]["truncated"] > 0
    assert "truncate=True" in found["python"][0]
    assert ask(client, "predict", model="bert", text=text)["encoding"]["truncated"] > 0
    short = ask(client, "explain", model="bert", text=TEXT, methods=["gradient_norm"])
    assert "truncate" not in short["python"][0]


def test_predictions_removals_heads_and_trust(client, models):
    model = models["bert"]
    told = ask(client, "predict", model="bert", text=TEXT)
    (said,) = model.predict(model.encode(raison.api.examples_of(TEXT)))
    assert told["text"] == said.target.text and told["top"][0][1] == pytest.approx(said.value)
    base = raison.explain(model, TEXT, "uniform")
    expected = without(model, base, [1, 3])
    assert ask(client, "remove", model="bert", text=TEXT, removed=[1, 3]) == pytest.approx(expected)
    assert expected["before"] == pytest.approx(said.value) and expected["before"] != pytest.approx(expected["after"])
    nothing = ask(client, "remove", model="bert", text=TEXT, removed=[])
    assert nothing["before"] == pytest.approx(nothing["after"]) and nothing["same"]
    found = ask(client, "heads", model="bert", text=TEXT, method="leave_one_out", off=[[0, 1]])
    carried = np.array(found["heads"]["carried"])
    assert carried.sum() == pytest.approx(1) and carried.shape == (len(found["heads"]["maps"]), carried.shape[1])
    loo = raison.explain(model, TEXT)
    np.testing.assert_array_equal(
        found["explanations"][1]["scores"],
        muted(model, raison.core.registry.methods.build("leave_one_out"), loo, [(0, 1)]).scores,
    )
    assert not np.allclose(found["explanations"][1]["scores"], found["explanations"][0]["scores"])
    told = ask(client, "trust", model="bert", text=TEXT, method="leave_one_out")
    assert told["trust"] == trust(model, loo).to_dict() and told["trust"]["sentences"]


def test_a_head_that_is_off_is_the_head_times_zero(models):
    """Against the weights: the output projection of a head set to zero gives the same answer."""
    model = models["bert"]
    found = raison.explain(model, TEXT)
    told = heads_of(model, found)
    after = muted(model, raison.core.registry.methods.build("leave_one_out"), found, [(1, 0)]).diagnostics
    hf = copy.deepcopy(model.hf)
    attention = hf.bert.encoder.layer[1].attention
    width = attention.self.attention_head_size
    attention.output.dense.weight.data[:, :width] = 0
    literal = raison.load(hf, model.tokenizer)
    expected = literal.predict(literal.encode(raison.api.examples_of(TEXT)))[0]
    value = dict(zip(model.labels, [0] * 9, strict=False)) and dict(expected.top)[found.target.text]
    assert after["value_without_heads"] == pytest.approx(value, rel=1e-6) and len(told["maps"]) == 2


def test_files(client, models):
    found = ask(client, "explain", model="bert", text=f"{TEXT} {SCRIPT}", methods=["leave_one_out", "random"])
    for kind, start in (("html", b"<!doctype html>"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        response = client.post("/api/export", json={"explanations": found["explanations"], "kind": kind})
        if response.headers["content-type"].startswith("application/x-ndjson"):
            import base64

            body = base64.b64decode(json.loads(response.text.rstrip("\n").split("\n")[-1])["file"]["data"])
        else:
            body = response.content
            assert response.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in response.headers["content-security-policy"]
        assert body.startswith(start) and b"<script>alert" not in body
    good = found["explanations"][0]
    for bad in (
        {"method": "x"},
        {**good, "diagnostics": {"certificate": 5}},
        {**good, "method": 5},
        {**good, "scores": []},
    ):
        response = client.post("/api/export", json={"explanations": [bad], "kind": "svg"})
        assert response.status_code == 400 and "error" in response.json()
    many = client.post("/api/export", json={"explanations": [good] * 200, "kind": "png"})
    assert many.status_code == 400 or len(good["units"]["names"]) * 200 <= 4000


def test_a_text_is_sent_once_for_all_its_rationales(client, models):
    found = ask(client, "rationalize", model="gpt2", text=TEXT, target="all")["explanations"]
    slim = [found[0], *({**each, "encoding": 0} for each in found[1:])]
    whole, short = (client.post("/api/export", json={"explanations": given, "kind": "html"}) for given in (found, slim))
    assert whole.status_code == 200 and whole.content == short.content
    for place in (1, 7, -1, True):
        response = client.post("/api/export", json={"explanations": [{**found[0], "encoding": place}], "kind": "html"})
        assert response.status_code == 400


def test_pictures_that_can_not_be_drawn_are_refused(client):
    good = ask(client, "explain", model="bert", text=TEXT)["explanations"][0]
    long = {**good, "encoding": {**good["encoding"], "texts": [TEXT + " lorem ipsum" * 2000]}}
    response = client.post("/api/export", json={"explanations": [long], "kind": "svg"})
    assert response.status_code == 400 and "20000 letters" in response.json()["error"]
    deep: list = []
    for _ in range(700):
        deep = [deep]
    huge = {**good, "scores": [10**400, *good["scores"][1:]]}
    for bad in ({**good, "cost": {"a": deep}}, huge, {**good, "encoding": {**good["encoding"], "texts": [deep]}}):
        for kind in ("html", "svg"):
            response = client.post("/api/export", json={"explanations": [bad], "kind": kind})
            assert response.status_code in (200, 400), response.text


def test_runs_with_half_characters_can_be_read(models, tmp_path):
    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"text": "a lovely \ud800 film"}, {"text": "a lovely film", "label": "\ud800"}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run(tmp_path / "run", RunSpec(str(tmp_path / "model"), str(tmp_path / "data.jsonl"), ("leave_one_out",)))
    with served(models, Shelf({"r": str(tmp_path / "run")})) as client:
        told = result_of(client.get("/api/runs/r"))
        assert told["found"] == 2 and {row["text"] for row in told["rows"]} >= {"a lovely film"}
        assert client.get("/api/runs/r/" + "9" * 4000).status_code == 400
        assert len(client.get("/api/runs/r/" + "9" * 4000).text) < 200


def test_runs_are_sorted_and_filtered(client):
    told = result_of(client.get("/api/runs/done", params={"sort": "comprehensiveness", "method": "leave_one_out"}))
    values = [row["numbers"]["comprehensiveness"] for row in told["rows"]]
    assert told["found"] == 9 and values == sorted(values)
    told = result_of(client.get("/api/runs/done", params={"find": "SCRIPT", "down": True}))
    assert told["found"] == 2 and told["rows"][0]["text"] == SCRIPT
    one = result_of(client.get(f"/api/runs/done/{told['rows'][0]['index']}"))
    assert [Explanation.from_dict(each).method for each in one["explanations"]] == ["leave_one_out", "random"]
    told = result_of(client.get("/api/runs/done", params={"start": 4, "count": 3}))
    assert len(told["rows"]) == 3 and told["found"] == 18
    for path in ("/api/runs/other", "/api/runs/done/999", "/api/runs/done?sort=none", "/api/runs/done?count=0"):
        assert client.get(path).status_code == 400
    assert client.get("/api/runs/done/x").status_code == 422
    assert client.get("/api/runs/done?count=1e3").json()["error"].startswith("count is refused")


# -- many at once ---------------------------------------------------------------------------------------------------


def mixed(rng: random.Random) -> tuple[str, dict]:
    text = " ".join(rng.choices("a lovely film story warm dull very it is".split(), k=rng.randint(3, 9)))
    model = rng.choice(["bert", "gpt2"])
    kind = rng.choice(["explain", "rationalize", "predict", "remove"])
    body = {"model": model, "text": text}
    if kind == "explain":
        body["methods"] = [rng.choice(["leave_one_out", "gradient_norm", "lime(samples=40)", "attention_rollout"])]
    if kind == "remove":
        body["removed"] = [0]
    return kind, body


def storm(address: str, clients: int, seconds: float) -> tuple[list, list[int]]:
    """Mixed requests by many clients at once; what was asked and answered, and all status codes."""

    async def one(seed: int, until: float, answered: list, codes: list[int]) -> None:
        rng = random.Random(seed)
        async with httpx.AsyncClient(base_url=address, timeout=120) as client:
            while time.monotonic() < until:
                kind, body = mixed(rng)
                response = await client.post(f"/api/{kind}", json=body)
                codes.append(response.status_code)
                if response.status_code == 200:
                    answered.append((kind, body, result_of(response)))
                else:
                    assert response.status_code == 429 and int(response.headers["retry-after"]) >= 1
                    await asyncio.sleep(0.2 * rng.random())

    async def everybody() -> tuple[list, list[int]]:
        answered: list = []
        codes: list[int] = []
        until = time.monotonic() + seconds
        await asyncio.gather(*(one(seed, until, answered, codes) for seed in range(clients)))
        return answered, codes

    return asyncio.run(everybody())


def check_answers(models, answered) -> None:
    """Every accepted answer equals the library's, asked alone."""
    known: dict = {}
    for kind, body, told in answered:
        key = json.dumps([kind, body])
        if key not in known:
            model = models[body["model"]]
            if kind == "explain":
                known[key] = raison.explain(model, body["text"], body["methods"][0])
            elif kind == "rationalize":
                known[key] = raison.rationalize(model, body["text"], units="word")
            elif kind == "predict":
                known[key] = model.predict(model.encode(raison.api.examples_of(body["text"])))[0].target.text
            else:
                known[key] = without(model, raison.explain(model, body["text"], "uniform"), [0])
        if kind in ("explain", "rationalize"):
            same(told["explanations"][0], known[key])
        elif kind == "predict":
            assert told["text"] == known[key]
        else:
            assert told == known[key]


def resident() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def loaded(models, clients: int, seconds: float, waiting: int) -> None:
    with served(models, waiting=waiting, workers=2) as client:
        storm(str(client.base_url), 4, 1)
        before = resident()
        answered, codes = storm(str(client.base_url), clients, seconds)
    assert len(answered) > clients / 4 and not [code for code in codes if code >= 500]
    assert resident() - before < 300_000  # kB
    check_answers(models, answered)
    return codes


def test_many_clients_get_the_answers_of_one(models):
    codes = loaded(models, clients=12, seconds=4, waiting=4)
    assert 429 in codes  # twelve clients, two workers, four may wait


@pytest.mark.full
def test_fifty_clients_for_a_minute(models):
    codes = loaded(models, clients=50, seconds=60, waiting=16)
    assert 429 in codes and codes.count(200) > 100


def test_who_leaves_frees_the_work(models):
    """A client that is killed in the middle of a long request: its worker is free within two seconds."""
    with served(models, workers=1, waiting=1) as client:
        workers = client.workers

        async def leave() -> None:
            async with httpx.AsyncClient(base_url=client.base_url, timeout=60) as one:
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
        start = time.monotonic()
        while workers.running and time.monotonic() - start < 5:
            time.sleep(0.02)
        assert time.monotonic() - start < 2
        assert ask(client, "predict", model="bert", text=TEXT)["text"]


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
        assert await asyncio.wait_for(last.events.get(), 5) == ("result", 3)
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
        raison.explain(models["bert"], TEXT, "alti")  # which has one pass, and much to count behind it


# -- one client and the others --------------------------------------------------------------------------------------


def unread(client, count: int, requests: int = 60) -> list[socket.socket]:
    """Connections that ask for more than fits into any buffer, and never read it."""
    found = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((client.base_url.host, client.base_url.port))
        one.sendall(b"GET /api/openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * requests)
        found.append(one)
    return found


def until(holds) -> None:
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it does not come to that")


def stuck(client) -> int:
    return sum(each.flow.write_paused for each in list(client.connections))


def test_connections_that_never_read_make_room_for_others(models):
    with served(models, connections=8, patience=60) as client:
        slow = unread(client, 20)
        until(lambda: stuck(client) >= 7)
        assert len(client.connections) <= 8
        for _ in range(3):
            with httpx.Client(base_url=client.base_url, timeout=20) as another:
                assert another.get("/api/about").status_code == 200
                assert ask(another, "predict", model="bert", text=TEXT)["text"]
        for one in slow:
            one.close()


def test_connections_that_never_read_are_closed_in_time(models):
    with served(models, patience=0.3) as client:
        slow = unread(client, 4)
        until(lambda: stuck(client) == 4)
        until(lambda: not client.connections)
        for one in slow:
            one.close()


def test_who_reads_slowly_gets_all_of_it(models):
    """Slower than the patience in all, but never without reading for so long."""
    with served(models, patience=0.6) as client:
        whole = len(client.get("/api/openapi.json").content)
        (one,) = unread(client, 1, requests=40)
        until(lambda: stuck(client) == 1)
        one.settimeout(20)
        read, begun = 0, time.monotonic()
        while read < 40 * whole:
            part = one.recv(2**16)
            assert part, f"closed behind {read} bytes"
            read += len(part)
            time.sleep(0.01)
        assert time.monotonic() - begun > 0.6
        one.close()


def test_requests_that_are_worked_on_are_not_sent_away(models):
    long = {"model": "slow", "text": " ".join(map(str, range(40))), "methods": ["lime(samples=150)"], "units": "token"}
    with served(models, connections=4, patience=60) as client:
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask(client, "explain", **long)))
        thread.start()
        until(lambda: client.workers.running)
        for one in unread(client, 12):
            one.close()
        thread.join()
        assert answers[0]["explanations"]


def test_a_full_queue_of_one_client_leaves_another_its_turn(models):
    long = {"model": "slow", "text": " ".join(map(str, range(40))), "methods": ["lime(samples=400)"], "units": "token"}
    with served(models, workers=1, waiting=3) as client:
        codes: list[int] = []

        def hog() -> None:
            codes.append(httpx.post(f"{client.base_url}/api/explain", json=long, timeout=60).status_code)

        threads = [threading.Thread(target=hog) for _ in range(12)]
        for thread in threads:
            thread.start()
        until(lambda: len(codes) >= 12 - 4)
        assert client.get("/api/about").status_code == 200  # which gives it a session
        for _ in range(5):
            assert client.post("/api/predict", json={"model": "bert", "text": TEXT}).status_code == 200
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
            assert (await asyncio.wait_for(job.events.get(), 5))[0] == "result"
        assert order.index("three") < 4 and sorted(order) == ["one"] * 5 + ["three"] + ["two"] * 2
        until(lambda: not workers.turns)  # clients that are done are not remembered
        workers.close()

    asyncio.run(share())


def test_a_session_comes_with_the_first_answer_and_stays(models):
    with served(models, token="secret") as client:
        first = client.get("/")
        assert first.status_code == 401
        assert re.fullmatch(
            r"raison-session=[0-9a-f]{32}; HttpOnly; SameSite=Strict; Path=/", first.headers["set-cookie"]
        )
        assert "set-cookie" not in client.get("/").headers
        made_up = client.get("/", headers={"cookie": "raison-session=x"})
        assert "raison-session=" in made_up.headers["set-cookie"]


# -- who may ask, and what --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model": "/etc/passwd", "text": TEXT}, 400, "no model called"),
        ({"model": "bert", "text": ""}, 400, "empty"),
        ({"model": "bert", "text": "x " * 20_000}, 400, "characters"),
        ({"model": "bert", "text": TEXT, "methods": ["nothing"]}, 400, "no method called"),
        ({"model": "bert", "text": TEXT, "methods": ["lime(samples=100000)"]}, 400, "more than the 2000"),
        ({"model": "bert", "text": TEXT, "methods": ["idf(table='/etc/passwd')"]}, 400, "names a file"),
        ({"model": "bert", "text": TEXT, "methods": ["masked_lrp(heads=passwd)"]}, 400, "names a file"),
        ({"model": "bert", "text": TEXT, "methods": ["random"] * 20}, 422, "methods"),
        ({"model": "bert", "text": TEXT, "target": 1.5}, 422, "target is not of the right shape"),
        ({"model": "bert", "text": TEXT, "target": "nowhere"}, 400, "no class"),
        ({"model": "bert", "text": TEXT, "seed": -1}, 422, "seed"),
        ({"model": "bert", "text": TEXT, "strange": 1}, 422, "strange"),
        ({"model": "bert", "text": 3}, 422, "text"),
        ({"text": TEXT}, 422, "model"),
        ({"model": "bert", "text": TEXT, "methods": ["__import__('os')"]}, 400, "not a name with parameters"),
    ],
)
def test_what_can_not_be_had_is_one_sentence(client, body, code, words):
    response = client.post("/api/explain", json=body)
    told = response.json()["error"]
    assert response.status_code == code and words in told and "\n" not in told and "Traceback" not in told


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("by_order(method=idf(table='/etc/passwd'))", "names a file"),
        ("by_order(method=\"idf(table='/etc/passwd')\")", "names a file"),
        ("hierarchical(search=\"by_order(method=idf(table='/etc/hostname'))\")", "names a file"),
        ('by_order(method="lime(samples=100000000)")', "more than the 2000"),
        ("by_order(method=5)", "is no method"),
        ("by_order(method=None)", "is no method"),
    ],
)
def test_searches_can_not_smuggle(client, search, words):
    response = client.post("/api/rationalize", json={"model": "bert", "text": TEXT, "search": search})
    assert response.status_code == 400 and words in response.json()["error"]


def test_absence_means_what_was_asked(client, models):
    """Of the removals the model has, what-if and trust use the one that was chosen, for methods of all kinds."""
    after, gone = set(), set()
    for removal in models["bert"].removals:
        base = {"model": "bert", "text": TEXT, "removal": removal}
        after.add(round(ask(client, "remove", **base, removed=[1, 2])["after"], 12))
        told = ask(client, "trust", **base, method="gradient_norm")["trust"]
        gone.add(round(told["numbers"]["deletion"]["this"], 12))
    assert len(after) >= 3 and len(gone) >= 3


def test_what_if_is_about_what_the_model_says(client, models):
    """Whatever is explained: the same if the prediction is the same as before, and if not, what it is then."""
    model = models["bert"]
    for target in (0, 1):
        for removed in ([0], [1, 2, 3], [0, 1, 2, 3, 4, 5]):
            told = ask(client, "remove", model="bert", text=TEXT, target=target, removed=removed)
            keep = [k for k in range(len(TEXT.split())) if k not in removed]
            base = raison.explain(model, TEXT, "uniform")
            question = raison.models.protocol.Question(
                base.encoding, base.target, base.units.keep(np.isin(np.arange(len(base.units)), keep))[None]
            )
            best = int(model.score([question])[0].predicted[0, 0])
            whole = model.predict([base.encoding])[0].target.text
            assert told["same"] == (model.labels[best] == whole)
            assert told["same"] or told["instead"] == model.labels[best]


def test_trust_says_when_there_is_no_order(models):
    found = trust(models["bert"], raison.explain(models["bert"], TEXT, "uniform"))
    assert found.verdict == "inconclusive" and "nothing in order" in found.sentences[0]
    assert not any("leave-one-out" in each for each in found.sentences)
    found = trust(models["bert"], raison.explain(models["bert"], TEXT, target=0, contrast=1))
    assert any("preference over the contrast" in each for each in found.sentences)


def test_other_pages_hosts_paths_and_bodies_are_refused(client):
    for headers, code in (
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[evil"}, 403),
        ({"origin": "ftp://127.0.0.1"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "127.0.0.1:80@evil.example"}, 421),
        ({"host": "127.0.0.1:evil.example"}, 421),
        ({"sec-fetch-site": "cross-site"}, 403),
    ):
        assert client.post("/api/predict", json={"model": "bert", "text": "x"}, headers=headers).status_code == code
    fine = {"origin": str(client.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert client.post("/api/predict", json={"model": "bert", "text": "x"}, headers=fine).status_code == 200
    for path in (
        "/page/../server.py",
        "/page/%2e%2e/html.py",
        "/page/..%2f..%2fweb%2fserver.py",
        "/etc/passwd",
        "/page/none.js",
    ):
        assert client.get(path).status_code == 404
    assert client.post("/api/predict", content=b"x" * (2**21 + 1)).status_code == 413
    assert client.post("/api/predict", content=iter([b"x" * 2**20] * 3)).status_code == 413
    assert client.post("/api/predict", content=b"{").status_code == 422
    assert client.get("/api/explain").status_code == 405
    assert client.get("/docs").status_code == 404


def test_every_answer_has_its_headers(client):
    for response in (client.get("/"), client.get("/page/app.js"), client.get("/api/about"), client.get("/none")):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "script-src 'self'" in policy
        assert (
            response.headers["x-content-type-options"] == "nosniff"
            and response.headers["referrer-policy"] == "no-referrer"
        )
    assert "<script>" not in client.get("/").text  # no inline script


def test_tokens(models):
    with served(models, token="secret") as client:
        assert client.get("/").status_code == 401 and client.get("/api/about").status_code == 401
        assert client.get("/?token=wrong").status_code == 401
        assert client.get("/api/about", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/about", headers={"authorization": "Bearer secret"}).status_code == 200
        opened = client.get("/?token=secret")
        assert opened.status_code == 303 and "HttpOnly" in opened.headers["set-cookie"]
        assert client.get("/").status_code == 200 and client.get("/api/about").status_code == 200  # by the cookie
    for others in ('theme={"a":1}; ', "x[y]=1; ", "a b=c; ", ""):
        assert cookie_of(f"{others}raison-token=secret; z=1") == "secret"
    assert cookie_of("my-raison-token=secret") == cookie_of("") == ""


def test_slow_clients_are_sent_away(models):
    with served(models, patience=0.5) as client:
        host, port = client.base_url.host, client.base_url.port
        said = []
        for start in (
            b"",
            b"GET / HT",
            b"POST /api/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 50\r\n\r\n{",
        ):
            with socket.create_connection((host, port), timeout=5) as one:
                one.sendall(start)
                begun = time.monotonic()
                said.append(one.recv(1000))
                assert time.monotonic() - begun < 3
        assert said[0] == said[1] == b"" and b" 408 " in said[2].split(b"\r\n")[0]
        assert client.get("/api/about").status_code == 200


def test_five_thousand_strange_requests(client):
    strange(client, 300, seed=0)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_five_thousand_strange_requests_in_full(client, seed):
    strange(client, 1000, seed=seed + 1)


VALUES = [
    "",
    "x",
    TEXT,
    SCRIPT,
    "\ud83d\ude00",
    "../../x",
    "all",
    "\x00",
    "a(b=1)",
    "1e999",
    None,
    0,
    -1,
    7,
    2**70,
    1.5,
    True,
    [],
    {},
]


def strange(client, count: int, seed: int) -> None:
    """Requests of every shape: never an error of the server's own."""
    rng = random.Random(seed)
    fields = "model text pair target contrast units removal methods method search sufficient seed removed off question "
    fields = [*(fields + "passages answer explanations kind generate title").split(), "strange"]

    def value(depth: int = 0) -> object:
        if not depth and rng.random() < 0.3:
            return [value(1) for _ in range(rng.randint(0, 3))]
        return {str(value(1)): value(1)} if not depth and rng.random() < 0.2 else rng.choice(VALUES)

    for _ in range(count):
        path = rng.choice(
            ["predict", "explain", "rationalize", "ground", "trust", "remove", "heads", "export", "runs/done", "x"]
        )
        body = {name: value() for name in rng.sample(fields, rng.randint(0, 5))}
        if rng.random() < 0.7:
            body |= {"model": rng.choice(["bert", "gpt2", "qa"]), "text": rng.choice([TEXT, SCRIPT, "x"])}
        if rng.random() < 0.1:
            response = client.post(f"/api/{path}", content=bytes(rng.randrange(256) for _ in range(rng.randint(0, 60))))
        elif rng.random() < 0.1:
            response = client.get(
                f"/api/{path}",
                params={name: repr(value()) for name in ("sort", "start", "count", "find")},
            )
        else:
            response = client.post(f"/api/{path}", content=json.dumps(body))
        assert response.status_code < 500, (path, body, response.text)
        assert "Traceback" not in response.text
        if response.headers["content-type"].startswith("application/x-ndjson"):
            last = json.loads(response.text.rstrip("\n").split("\n")[-1])
            assert last.get("status", 200) < 500, (path, body, last)


def test_the_description_is_kept(client):
    """schemathesis makes requests of the OpenAPI description and of its edges."""
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_url(f"{client.base_url}/api/openapi.json")
    for result in schema.get_all_operations():
        operation = result.ok()

        @given(case=operation.as_strategy())
        @settings(
            max_examples=8,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            database=None,
        )
        def holds(case) -> None:
            response = case.call()
            assert response.status_code < 500, response.text

        holds()


def test_settings_and_the_guard_refuse_nonsense():
    bad = [{"workers": 0}, {"seconds": 0}, {"body": -1}, {"port": "x"}, {"token": ""}, {"token": "a;b é"}]
    for changes in bad:
        with pytest.raises(InputError):
            Settings(**changes)
    assert Guard(None, Settings(host="0.0.0.0")).any_host
    with pytest.raises(InputError, match="is no run"):
        Shelf({"x": "/nowhere"})
