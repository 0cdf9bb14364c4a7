"""Requests of every shape get a sentence, never an error of the server's own."""

from __future__ import annotations

import json
import random

import pytest

from tests.helpers.web_client import SCRIPT, TEXT


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
            [
                "predict",
                "explain",
                "rationalize",
                "ground",
                "trust",
                "remove",
                "heads",
                "export",
                "runs/done",
                "x",
            ]
        )
        body = {name: value() for name in rng.sample(fields, rng.randint(0, 5))}
        if rng.random() < 0.7:
            body |= {
                "model": rng.choice(["bert", "gpt2", "qa"]),
                "text": rng.choice([TEXT, SCRIPT, "x"]),
            }
        if rng.random() < 0.1:
            response = client.post(
                f"/api/{path}", content=bytes(rng.randrange(256) for _ in range(rng.randint(0, 60)))
            )
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
