"""What may be asked for."""

from __future__ import annotations

import pytest

from tests.helpers.web_client import TEXT


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"model": "/etc/passwd", "text": TEXT}, 400, "no model called"),
        ({"model": "bert", "text": ""}, 400, "empty"),
        ({"model": "bert", "text": "x " * 20_000}, 400, "characters"),
        ({"model": "bert", "text": TEXT, "methods": ["nothing"]}, 400, "no method called"),
        (
            {"model": "bert", "text": TEXT, "methods": ["lime(samples=100000)"]},
            400,
            "more than the 2000",
        ),
        (
            {"model": "bert", "text": TEXT, "methods": ["idf(table='/etc/passwd')"]},
            400,
            "names a file",
        ),
        (
            {"model": "bert", "text": TEXT, "methods": ["masked_lrp(heads=passwd)"]},
            400,
            "names a file",
        ),
        ({"model": "bert", "text": TEXT, "methods": ["random"] * 20}, 422, "methods"),
        ({"model": "bert", "text": TEXT, "target": 1.5}, 422, "target is not of the right shape"),
        ({"model": "bert", "text": TEXT, "target": "nowhere"}, 400, "no class"),
        ({"model": "bert", "text": TEXT, "seed": -1}, 422, "seed"),
        ({"model": "bert", "text": TEXT, "strange": 1}, 422, "strange"),
        ({"model": "bert", "text": 3}, 422, "text"),
        ({"text": TEXT}, 422, "model"),
        (
            {"model": "bert", "text": TEXT, "methods": ["__import__('os')"]},
            400,
            "not a name with parameters",
        ),
    ],
)
def test_what_can_not_be_had_is_one_sentence(client, body, code, words):
    response = client.post("/api/explain", json=body)
    told = response.json()["error"]
    assert (
        response.status_code == code
        and words in told
        and "\n" not in told
        and "Traceback" not in told
    )


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
    response = client.post(
        "/api/rationalize", json={"model": "bert", "text": TEXT, "search": search}
    )
    assert response.status_code == 400 and words in response.json()["error"]
