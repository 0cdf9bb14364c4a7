"""Certificates are true, and say what was not proved."""

from __future__ import annotations

import pytest

import raison
from raison.models.tasks.base import outcomes_of_texts
from raison.models.tasks.function import Function
from raison.testing import tiny_model
from tests.helpers.searches import (
    OPENINGS,
    TEXT,
    rationale,
    tiny,
    verify,
)


@pytest.mark.parametrize(
    "search", ["greedy", "refined", "exact(evaluations=300)", "by_order", "hierarchical"]
)
def test_irrelevant_text_never_makes_a_certificate_false(search, precise):
    noise = ("Numbers like 42. ", "Where does the river begin? It begins in the hills. ")
    for model in (tiny("llama"), tiny_model("bert", "classification")):
        for front in ("", *noise):
            about = rationale(model, front + "The film is good", search)
            assert verify(model, about).sufficient


@pytest.mark.registry
def test_certificates_hold_on_a_real_model_behind_unrelated_text(stories15m):
    for front in ("", "The bank is closed on Sunday. A ship has sails. "):
        about = rationale(stories15m, front + OPENINGS[4])
        assert verify(stories15m, about, 1e-3).sufficient


# -- G. certificates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_a_spent_budget_is_said(search):
    model = tiny("qwen")
    about = rationale(model, "The film is a lovely surprise", f"{search}(evaluations=3)")
    claim = verify(model, about)
    assert claim.status == "budget" and claim.evaluations <= 3 and claim.sufficient
    assert (
        rationale(model, "The film is a lovely surprise", search).certificate.status == "complete"
    )


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_what_is_impossible_is_said(search, precise):
    """Of a function that never gives the answer, and of a model whose whole context does not."""

    def never(texts):
        return [[0.0, 1.0 + len(text)] for text in texts]

    about = rationale(never, TEXT, search, target=0, sufficient="argmax")
    claim = about.certificate
    assert (
        claim.status == "impossible"
        and not claim.sufficient
        and not claim.optimal
        and not claim.is_prediction
    )
    assert not claim.irreducible
    model = tiny("gpt2")
    (encoding,) = model.encode([raison.Example(TEXT)])
    last = int(
        outcomes_of_texts(model.runner, [encoding], [model.next_target(encoding, 0)])[0][0].argmin()
    )
    about = rationale(model, TEXT, search, target=[last], sufficient="argmax")
    claim = verify(model, about)
    if not claim.sufficient:
        assert claim.status == "impossible" and not claim.optimal


def test_a_target_that_is_not_the_models_choice():
    model = tiny("gpt2")
    about = rationale(model, TEXT, target=[9])
    claim = verify(model, about)
    assert (
        not claim.is_prediction
        and claim.rule == "probability(tau=0.9)"
        and claim.status == "complete"
    )
    assert "is not the model's own choice" in about.notes[0]
    assert not any("own choice" in note for note in rationale(model, TEXT).notes)


def test_the_whole_context_is_what_the_certificate_compares_with(precise):
    """`full_value` belongs to the target, whatever else the model predicts about the text."""
    tagger = tiny_model("bert", "tagging")
    for text in (TEXT, "Nobody in the old town expected it"):
        for about in rationale(tagger, text, target="all"):
            verify(tagger, about)
    for about in rationale(tiny_model("electra", "tagging", 1), TEXT):
        verify(tiny_model("electra", "tagging", 1), about)


class Doubtful(Function):
    """A function of which an independent evaluation refutes everything but the whole text."""

    removals = ("delete", "mask")

    def score(self, questions, *, removal=None, heads=None, memory=None):
        answers = super().score(questions, memory=memory)
        for question, answer in zip(questions, answers, strict=True):
            if removal == "mask":
                part = ~question.keep.all(1)
                answer.margin[part], answer.rank[part] = -1.0, 1
        return answers


@pytest.mark.parametrize("search", ["greedy", "refined", "exact"])
@pytest.mark.parametrize("words", [3, 30])
def test_what_the_check_refutes_is_not_certified(search, words):
    model = Doubtful(lambda texts: [[1.0, 0.0]] * len(texts), "doubtful")
    about = rationale(model, "word " * words, search)
    claim = about.certificate
    assert about.selected.all() and claim.sufficient and claim.size == words


def test_a_certificate_has_its_fields():
    claim = rationale(tiny("gpt2"), TEXT).certificate
    assert [name for name, value in vars(claim).items() if value is None] == []
    assert set(claim.to_dict()) == set(vars(claim))


# -- I. the example everybody sees ----------------------------------------------------------------------------------


@pytest.mark.registry
def test_the_supreme_court(smollm2):
    text = "The Supreme Court on Tuesday rejected a challenge to the"
    greedy, refined = (rationale(smollm2, text, search) for search in ("greedy", "refined"))
    names = lambda about: {about.units.names[u] for u in about.order}  # noqa: E731
    assert (
        names(greedy) == {"The", "Supreme", "Court", "challenge"}
        and greedy.certificate.kept_tokens == 5
    )
    assert names(refined) == {"The", "Court", "challenge"} and refined.certificate.kept_tokens == 4
    assert greedy.encoding.tokens[-1].strip() == "the" and not greedy.certificate.irreducible
    assert verify(smollm2, refined, 1e-3).irreducible
