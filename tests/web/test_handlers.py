"""What the server answers is what the library gives, whoever asks."""

from __future__ import annotations

import numpy as np
import pytest

import raison
from raison.show.text_formats import probability_in_percent
from raison.studies.trust import trust
from raison.studies.what_if import answer_without_units, explain_without_heads
from tests.helpers.web_client import TEXT, ask, same


def test_about_tells_what_can_be_asked(client, models):
    told = client.get("/api/about").json()
    assert [each["name"] for each in told["models"]] == list(models) and told["runs"] == ["done"]
    methods = {each["name"]: each for each in told["methods"]}
    assert {"leave_one_out", "integrated_gradients"} <= methods.keys()
    assert {"name": "heads", "kind": "text", "default": None} not in methods["masked_lrp"][
        "parameters"
    ]  # a file
    assert (
        "own" not in told["models"][0]["methods"]
        and "leave_one_out" in told["models"][0]["methods"]
    )
    assert {each["name"] for each in told["searches"]} >= {"greedy", "exact", "refined"}


def test_explanations_are_those_of_the_library(client, models):
    found = ask(
        client,
        "explain",
        model="bert",
        text=TEXT,
        methods=["leave_one_out", "integrated_gradients(steps=8)"],
    )
    for each, method in zip(
        found["explanations"], ("leave_one_out", "integrated_gradients(steps=8)"), strict=True
    ):
        same(each, raison.explain(models["bert"], TEXT, method))
    found = ask(
        client,
        "explain",
        model="bert",
        text=TEXT,
        pair="a dull one",
        units="token",
        target=0,
        contrast=1,
    )
    same(
        found["explanations"][0],
        raison.explain(models["bert"], (TEXT, "a dull one"), target=0, contrast=1, units="token"),
    )
    found = ask(
        client,
        "rationalize",
        model="gpt2",
        text=TEXT,
        units="token",
        search="greedy",
        sufficient="top(k=3)",
    )
    same(
        found["explanations"][0],
        raison.rationalize(models["gpt2"], TEXT, "greedy", sufficient="top(k=3)"),
    )
    found = ask(client, "rationalize", model="gpt2", text=TEXT, units="token", target="all")
    assert (
        len(found["explanations"])
        == len(raison.rationalize(models["gpt2"], TEXT, target="all"))
        > 2
    )
    found = ask(
        client,
        "ground",
        model="llama",
        question="who?",
        passages={"a": "a film", "b": "a story"},
        answer="film",
    )
    expected = raison.ground(
        models["llama"], "who?", {"a": "a film", "b": "a story"}, answer="film"
    )
    same(found["explanations"][0], expected)


def test_copied_python_gives_the_same(client, models, monkeypatch):
    monkeypatch.setattr(
        raison, "load", lambda name: models[name] if isinstance(name, str) else name
    )
    asked = [
        ("explain", {"model": "bert", "text": TEXT, "methods": ["leave_one_out"]}),
        (
            "explain",
            {
                "model": "bert",
                "text": TEXT,
                "pair": 'it\'s "dull"\n',
                "methods": ["random"],
                "seed": 3,
                "target": 1,
            },
        ),
        (
            "explain",
            {
                "model": "gpt2",
                "text": TEXT,
                "methods": ["gradient_norm"],
                "units": "token",
                "target": 2,
            },
        ),
        (
            "rationalize",
            {"model": "bert", "text": TEXT, "sufficient": "probability(tau=0.4)", "units": "word"},
        ),
        ("rationalize", {"model": "bert", "text": TEXT, "target": 0}),
        ("rationalize", {"model": "bert", "text": TEXT, "target": 1}),
        (
            "rationalize",
            {"model": "gpt2", "text": TEXT, "search": "greedy", "units": "token", "generate": 2},
        ),
        (
            "ground",
            {
                "model": "llama",
                "question": "who?",
                "passages": {"a": "a film", "b": "a story"},
                "answer": "film",
            },
        ),
    ]
    for path, body in asked:
        found = ask(client, path, **body)
        scope: dict = {}
        exec(found["python"][0], scope)  # what the page lets people copy
        told = scope["result"]
        for each, expected in zip(
            found["explanations"], told if isinstance(told, list) else [told], strict=True
        ):
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
    expected = answer_without_units(model, base, [1, 3]).to_dict()
    removed = ask(client, "remove", model="bert", text=TEXT, removed=[1, 3])
    words = removed.pop("words")
    assert removed == pytest.approx(expected)
    assert words["change"] == (
        f"{probability_in_percent(expected['before'])} → {probability_in_percent(expected['after'])}"
    )
    assert words["verdict"].startswith("it predicts ")
    assert expected["before"] == pytest.approx(said.value) and expected["before"] != pytest.approx(
        expected["after"]
    )
    nothing = ask(client, "remove", model="bert", text=TEXT, removed=[])
    assert nothing["before"] == pytest.approx(nothing["after"]) and nothing["same"]
    found = ask(client, "heads", model="bert", text=TEXT, method="leave_one_out", off=[[0, 1]])
    carried = np.array(found["heads"]["carried"])
    assert carried.sum() == pytest.approx(1) and carried.shape == (
        len(found["heads"]["maps"]),
        carried.shape[1],
    )
    share = f"{100 * carried[0, 1]:.1f} % of what all heads carry"
    assert found["heads"]["words"][0][1]["label"] == f"layer 0, head 1: {share}"
    loo = raison.explain(model, TEXT)
    np.testing.assert_array_equal(
        found["explanations"][1]["scores"],
        explain_without_heads(
            model, raison.core.registry.methods.build("leave_one_out"), loo, [(0, 1)]
        ).scores,
    )
    assert not np.allclose(found["explanations"][1]["scores"], found["explanations"][0]["scores"])
    told = ask(client, "trust", model="bert", text=TEXT, method="leave_one_out")
    assert told["trust"] == trust(model, loo).to_dict() and told["trust"]["sentences"]


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
                base.encoding,
                base.target,
                base.units.keep(np.isin(np.arange(len(base.units)), keep))[None],
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
