"""Asking a server as the page does, and comparing with the library."""

from __future__ import annotations

import json
import time

import numpy as np

from raison.core.records import Explanation

TEXT = "a lovely film and a warm story"

SCRIPT = "<script>alert(1)</script>"


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
    assert (
        read.method == expected.method
        and read.target == expected.target
        and read.units == expected.units
    )
    np.testing.assert_array_equal(read.scores, expected.scores)


def until(holds) -> None:
    for _ in range(
        6000
    ):  # so that a busy machine does not matter; what never comes is found all the same
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError("it does not come to that")
