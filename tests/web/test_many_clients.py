"""Many clients at once get the answers of one."""

from __future__ import annotations

import asyncio
import json
import random
import time

import httpx
import pytest

import raison
from raison.studies.what_if import answer_without_units
from raison.web.handler_answers import RemovalAnswer
from tests.helpers.serving import served
from tests.helpers.web_client import result_of, same


def mixed(rng: random.Random) -> tuple[str, dict]:
    text = " ".join(
        rng.choices("a lovely film story warm dull very it is".split(), k=rng.randint(3, 9))
    )
    model = rng.choice(["bert", "gpt2"])
    kind = rng.choice(["explain", "rationalize", "predict", "remove"])
    body = {"model": model, "text": text}
    if kind == "explain":
        body["methods"] = [
            rng.choice(["leave_one_out", "gradient_norm", "lime(samples=40)", "attention_rollout"])
        ]
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
                known[key] = model.predict(model.encode(raison.api.examples_of(body["text"])))[
                    0
                ].target.text
            else:
                base = raison.explain(model, body["text"], "uniform")
                known[key] = RemovalAnswer(answer_without_units(model, base, [0])).to_dict()
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
