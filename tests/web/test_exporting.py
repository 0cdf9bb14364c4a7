"""Explanations as files."""

from __future__ import annotations

import json

import pytest

import raison
from raison.core.errors import InputError
from raison.testing import tiny_model
from raison.web import schemas
from raison.web.exporting import export_response
from tests.helpers.web_client import SCRIPT, TEXT, ask


def test_files(client, models):
    found = ask(
        client,
        "explain",
        model="bert",
        text=f"{TEXT} {SCRIPT}",
        methods=["leave_one_out", "random"],
    )
    for kind, start in (("html", b"<!doctype html>"), ("svg", b"<?xml"), ("png", b"\x89PNG")):
        response = client.post(
            "/api/export", json={"explanations": found["explanations"], "kind": kind}
        )
        if response.headers["content-type"].startswith("application/x-ndjson"):
            import base64

            body = base64.b64decode(
                json.loads(response.text.rstrip("\n").split("\n")[-1])["file"]["data"]
            )
        else:
            body = response.content
            assert response.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in response.headers["content-security-policy"]
        assert body.startswith(start) and b"<script>alert" not in body
    good = found["explanations"][0]
    for bad in (
        {"method": "x"},
        {**good, "certificate": 5},
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
    whole, short = (
        client.post("/api/export", json={"explanations": given, "kind": "html"})
        for given in (found, slim)
    )
    assert whole.status_code == 200 and whole.content == short.content
    for place in (1, 7, -1, True):
        response = client.post(
            "/api/export", json={"explanations": [{**found[0], "encoding": place}], "kind": "html"}
        )
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
    for bad in (
        {**good, "cost": {"a": deep}},
        huge,
        {**good, "encoding": {**good["encoding"], "texts": [deep]}},
    ):
        for kind in ("html", "svg"):
            response = client.post("/api/export", json={"explanations": [bad], "kind": kind})
            assert response.status_code in (200, 400), response.text


def test_offsets_behind_the_end_of_a_text_are_refused():
    """A picture of a three-word text took gigabytes when its last token ended at 200,000,000."""
    found = raison.explain(tiny_model("bert", "classification"), "a b c").to_dict()
    for kind in ("svg", "html"):
        assert export_response(schemas.Export(explanations=[found], kind=kind)).status_code == 200
        bad = json.loads(json.dumps(found))
        bad["encoding"]["end"][-2] = 2 * 10**8
        with pytest.raises(InputError, match="no explanations of raison"):
            export_response(schemas.Export(explanations=[bad], kind=kind))
