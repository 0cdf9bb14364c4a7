"""What all searches share: targets, models, units, and that company changes nothing."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import raison
from raison.core.errors import InputError
from raison.core.registry import searches
from raison.models.load import load
from raison.models.protocol import Budget
from raison.models.runner.score_cache import Memory
from raison.testing import tiny_hf, tiny_model
from raison.testing.model_contract import model_state_hash
from tests.helpers.searches import (
    SEQ2SEQ,
    TEXT,
    drawn,
    found_by,
    rationale,
    tiny,
    verify,
)


def test_a_function_that_reads_one_word():
    def third(texts):
        return [[float("lies" in text.split()), 0.5] for text in texts]

    for search in ("greedy", "refined", "exact", "by_order", "hierarchical"):
        about = rationale(third, TEXT, search)
        assert [about.units.names[u] for u in about.order] == [
            "lies"
        ] and about.certificate.irreducible
    assert rationale(third, TEXT, "refined").certificate.optimal


@pytest.mark.parametrize("search", ["greedy", "refined", "exact"])
def test_results_do_not_depend_on_batches_or_memory(search, precise, monkeypatch):
    for family in ("mistral", "bart"):
        model, generator = tiny(family), np.random.default_rng(4)
        aims = [drawn(model, generator, 6, 9) for _ in range(3)]
        expected = [about.positions for about in found_by(search, model, aims)]
        assert [found_by(search, model, [aim])[0].positions for aim in aims] == expected
        for tokens in (8, 64, 4096):
            other = copy.copy(model)
            other.budget = Budget(tokens=tokens)
            assert [about.positions for about in found_by(search, other, aims)] == expected
        for limits in (
            dict(room=1),
            dict(room=20_000),
            dict(room=0),
            dict(limit=0),
            dict(limit=0, room=0),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(
                    "raison.rationales.search.Memory", lambda limits=limits: Memory(**limits)
                )
                assert [about.positions for about in found_by(search, model, aims)] == expected


def test_all_targets_together_or_one_by_one(precise):
    model = tiny("gpt2")
    together = rationale(model, TEXT, target="all")
    for place, about in enumerate(together, start=1):
        if len(about.units):
            alone = rationale(model, TEXT, target=place)
            assert (
                alone.positions == about.positions
                and alone.certificate.rule == about.certificate.rule
            )
        verify(model, about)


def test_the_users_model_is_as_it_was():
    for model in (tiny("gpt2"), tiny("t5"), tiny_model("bert", "classification")):
        before = model_state_hash(model)
        for search in searches:
            raison.rationalize(model, "The old town", f"{search}(evaluations=100)")
        assert model_state_hash(model) == before


@pytest.mark.parametrize(
    "wrong",
    "nonsense greedy(largest=some) greedy(largest=-1) greedy(evaluations=0) exact(evaluations=many) refined(short=0) "
    "refined(exchanges=-1) refined(exchanges=1.5) by_order(method=nothing) hierarchical(search=hierarchical)".split(),
)
def test_wrong_searches_are_refused_with_a_sentence(wrong):
    with pytest.raises(InputError) as refused:
        raison.rationalize(tiny("gpt2"), TEXT, wrong)
    assert str(refused.value).endswith((".", "?"))
    for thing in (7, None):
        with pytest.raises(InputError):
            raison.rationalize(tiny("gpt2"), TEXT, thing)


@pytest.mark.parametrize(
    "wrong", [dict(generate=-1), dict(generate=2, target=" a"), dict(generate="3"), dict(units="x")]
)
def test_wrong_wishes_are_refused(wrong):
    with pytest.raises(InputError):
        raison.rationalize(tiny("gpt2"), TEXT, **wrong)
    with pytest.raises(InputError):
        raison.rationalize(lambda texts: [0.5] * len(texts), TEXT, generate=3)


# -- F. targets and models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["greedy", "refined", "hierarchical"])
def test_targets_of_a_language_model(search, precise):
    model = tiny("llama")
    assert verify(model, rationale(model, TEXT, search)).is_prediction
    for about in rationale(model, TEXT, search, target="all"):
        verify(model, about)
    several = rationale(model, TEXT, search, target=" and a river")
    assert len(several.target.ids) > 1 and verify(model, several).rule.startswith("probability")
    written = rationale(model, TEXT, search, generate=4)
    claim = verify(model, written)
    assert 1 <= len(written.target.ids) <= 4 and claim.is_prediction and claim.rule == "argmax"
    assert (
        np.flatnonzero(written.units.of >= 0) < len(written.encoding) - len(written.target.ids)
    ).all()


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_targets_of_an_encoder_decoder(family, precise):
    hf, tokenizer = tiny_hf(family, "seq2seq")
    hf.generation_config.max_new_tokens = 3
    model = raison.load(hf, tokenizer)
    whole = rationale(model, "an old town", "greedy")
    assert len(whole.target.ids) > 1 and verify(model, whole).is_prediction
    for place, about in enumerate(rationale(model, "an old town", "greedy", target="all")):
        claim = verify(model, about)
        assert (
            claim.is_prediction
            and claim.sufficient
            and about.target.ids[0] == whole.target.ids[place]
        )
    assert verify(model, rationale(model, "an old town", target=1)).is_prediction
    assert verify(model, rationale(model, "an old town", "greedy", target="dull")).sufficient


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_labels_spans_and_tags(search, precise):
    bert = tiny_model("bert", "classification")
    assert verify(bert, rationale(bert, TEXT, search)).is_prediction
    assert verify(bert, rationale(bert, (TEXT, "Nobody expected it"), search)).sufficient
    for label in range(3):
        assert verify(bert, rationale(bert, TEXT, search, target=label)).is_prediction in (
            True,
            False,
        )
    assert verify(bert, rationale(bert, TEXT, search, target=0, contrast=1)).sufficient
    decoder = tiny_model("llama", "classification")
    assert verify(decoder, rationale(decoder, TEXT, search)).sufficient
    reader = tiny_model("bert", "qa")
    about = rationale(reader, ("Where does it lie?", TEXT), search)
    assert len(about.target.ids) == 2 and verify(reader, about).sufficient
    tagger = tiny_model("bert", "tagging")
    for about in rationale(tagger, TEXT, search, target="all"):
        assert verify(tagger, about).is_prediction


def test_functions_with_labels_and_with_one_number():
    def mood(texts):
        return [[text.count("good") - 0.1, text.count("bad")] for text in texts]

    model = raison.load(mood, labels=["fine", "awful"])
    about = rationale(model, "a good film and not a bad one, good", "exact")
    assert about.target.text == "fine" and about.certificate.rule == "argmax" and about.size == 1
    awful = rationale(model, "a good film and not a bad one, good", "exact", target="awful")
    assert (
        awful.certificate.rule == "share(tau=0.9)"
        and awful.notes
        and not awful.certificate.is_prediction
    )
    assert [awful.units.names[u] for u in awful.order] == ["bad"]

    def length(texts):
        return [float(sum("x" in word for word in text.split())) for text in texts]

    words = "x1 a x2 b x3 c x4 d x5 e x6 x7 x8 x9 x10"
    for search in ("greedy", "refined", "exact"):
        about = rationale(length, words, search)
        claim = verify(raison.load(length), about)
        assert claim.rule == "share(tau=0.9)" and about.size == 9 and not about.notes


def test_a_target_without_anything_to_remove():
    """The second token follows one token only, which can't be removed."""
    first = rationale(tiny("gpt2"), TEXT, target="all")[0]
    assert len(first.units) == 0 and first.certificate.sufficient and first.certificate.optimal


def test_explanations_of_rationales_read_back():
    found = raison.rationalize(tiny("gpt2"), TEXT)
    assert raison.Explanation.from_json(found.to_json()) == found
    assert (
        found.method == "refined"
        and found.removal == "delete"
        and found.target.output == "log_prob"
    )


def test_a_contrast_far_behind_the_target_of_a_function():
    def score(texts):
        return [[1.0 * ("good" in t), 0.2, 0.1, 0.05] for t in texts]

    for search in ("greedy", "refined", "exact"):
        found = raison.rationalize(
            load(score), "this is a very good film", search, target=0, contrast=3
        )
        assert found.certificate is not None


def test_no_rationale_found_is_not_no_rationale():
    """Where the whole text is not enough, a part may still be: greedy can't know."""

    def score(texts):
        words = [set(t.split()) for t in texts]
        return [
            [1.0 if w == {"x", "y"} else -5.0 if w and w < {"x", "y"} else -1.0, 0.0] for w in words
        ]

    found = raison.rationalize(load(score), "x y p q r", "greedy", target=0, sufficient="argmax")
    from raison.show.rationale_sentences import rationale_warnings

    assert "this search found no part that is" in rationale_warnings(found)[0]
    assert (
        raison.rationalize(
            load(score), "x y p q r", "exact", target=0, sufficient="argmax"
        ).selected.sum()
        == 2
    )
