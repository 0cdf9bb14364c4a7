"""An interrupted search gives what it has found."""

from __future__ import annotations

import copy

import pytest

import raison
from raison.rationales.search import Interrupted
from tests.helpers.searches import (
    About,
    reader,
    tiny,
    verify,
)


def interrupted_at(model, turn: int):
    """The same model, whose `score` is interrupted once."""
    other, calls = copy.copy(model), []

    def score(*args, **kwargs):
        calls.append(turn)
        if len(calls) == turn:
            raise KeyboardInterrupt
        return model.score(*args, **kwargs)

    other.score = score
    return other


@pytest.mark.parametrize(
    "turn", [2, 3, 4]
)  # the first call asks about whole texts, and there is nothing yet
@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "hierarchical"])
def test_an_interrupted_search_gives_what_it_has(search, turn):
    model = tiny("qwen")
    texts = ["The film is a lovely surprise", "She said it was not bad"]
    with pytest.raises(Interrupted) as stopped:
        raison.rationalize(interrupted_at(model, turn), texts, search)
    assert isinstance(stopped.value, KeyboardInterrupt) and len(stopped.value.partial) == 2
    for found, text in zip(stopped.value.partial, texts, strict=True):
        assert isinstance(found, raison.Explanation) and found.encoding.texts[0] == text
        claim = verify(model, About(found.encoding, found.target, found.units, found))
        assert claim.status == "interrupted" and claim.sufficient


def test_an_interruption_does_not_lose_finished_texts(monkeypatch):
    """Texts are searched in groups; those of earlier groups are part of what was found."""
    monkeypatch.setattr("raison.engine.GROUP", 1)
    alone, model = [], tiny("qwen")
    counting = copy.copy(model)
    counting.score = lambda *args, **kwargs: (alone.append(1), model.score(*args, **kwargs))[1]
    raison.rationalize(counting, "The film is good", "greedy")
    with pytest.raises(Interrupted) as stopped:
        raison.rationalize(
            interrupted_at(model, len(alone) + 2),
            ["The film is good", "She said it was bad"],
            "greedy",
        )
    assert [found.encoding.texts[0] for found in stopped.value.partial] == [
        "The film is good",
        "She said it was bad",
    ]
    assert stopped.value.partial[0].certificate.status == "complete"


def counted(model):
    """The same model, and a list that grows with each call of its `score`."""
    counting, calls = copy.copy(model), []
    counting.score = lambda *args, **kwargs: (calls.append(1), model.score(*args, **kwargs))[1]
    return counting, calls


@pytest.mark.parametrize(
    "behind", [0, 1]
)  # while each passage is taken away; while the certificate is made
def test_an_interruption_behind_the_search_does_not_lose_what_was_found(behind):
    model = reader()
    asked = ("who?", {"a": "a film", "b": "a story"}, "hierarchical")
    counting, calls = counted(model)
    whole = raison.ground(counting, *asked, answer="film")
    with pytest.raises(Interrupted) as stopped:
        raison.ground(interrupted_at(model, len(calls) - behind), *asked, answer="film")
    (found,) = stopped.value.partial
    assert found.selected.tolist() == whole.selected.tolist() and found.grounding is None
    told = {
        name: getattr(found.certificate, name)
        for name in ("status", "sufficient", "size", "irreducible")
    }
    assert told == {name: getattr(whole.certificate, name) for name in told}
    assert behind or "It was interrupted" in found.notes[-1]


def test_an_interruption_between_texts_does_not_lose_finished_ones(monkeypatch):
    monkeypatch.setattr("raison.engine.GROUP", 1)
    model = tiny("qwen")
    other, calls = copy.copy(model), []

    def encode(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return model.encode(*args, **kwargs)

    other.encode = encode
    with pytest.raises(Interrupted) as stopped:
        raison.rationalize(other, ["The film is good", "She said it was bad"], "greedy")
    assert [found.encoding.texts[0] for found in stopped.value.partial] == ["The film is good"]
