"""Rationales: the published algorithm literally, the smallest sets exactly, and certificates that are true."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from functools import cache
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.findings import Certificate, SearchStep
from raison.core.registry import rules, searches
from raison.core.units import group
from raison.methods.base import Batch
from raison.models.protocol import Budget, Question, Scored
from raison.models.runner.score_cache import Memory
from raison.models.runner.whole_texts import outcomes_of
from raison.models.tasks.continuation import extended
from raison.models.tasks.function import Function
from raison.rationales.search import Interrupted
from raison.testing import FAMILIES, tiny_hf, tiny_model
from raison.testing.checks import state_of
from raison.testing.precision import Float64
from tests.oracles.rationales import greedy_causal, greedy_labels, greedy_seq2seq

CAUSAL = [family for family, tasks in FAMILIES.items() if "causal" in tasks]
SEQ2SEQ = [family for family, tasks in FAMILIES.items() if "seq2seq" in tasks]
TEXT = "The old town lies on a hill"
OPENINGS = (
    "Once upon a time there was a little girl named Lily. She loved to",
    "Tom and his dog went to the park. The dog saw a big",
    "The sun was hot, so the children went to the lake to",
    "Ben was sad because he lost his red ball. His mom helped him to find the",
    "The cat sat on the mat and looked at the",
    "Mia wanted to bake a cake. She took eggs, milk and",
    "It was a cold day and the snow was very",
    "The bird could not fly because its wing was",
    "Sam had a toy car. He played with the toy car every",
    "Mom said it was time to go to bed, but Tim was not",
    "The bunny hopped into the garden and ate a",
    "Anna was scared of the dark, so her dad turned on the",
    "The boy put on his shoes and his coat and went",
    "The old man told the children a story about a brave",
    "Lucy found a shiny stone near the river. She put it in her",
    "The frog jumped into the pond and made a big",
    "Dad made pancakes for breakfast. They were warm and very",
    "The train was late, and the people waited at the",
    "A little fish lived in the sea. One day it met a big",
    "Jack climbed the tall tree to get the",
    "The capital of France is Paris, and the capital of Japan is",
    "She opened the door and saw that the room was",
    "The teacher asked the children to open their",
    "He was hungry, so he ate an apple and a piece of",
    "When the rain stopped, a rainbow appeared in the",
    "Two plus two is four, and three plus three is",
    "The baby started to cry because she wanted her",
    "They built a big castle out of sand on the",
    "The bear was looking for honey, but the bees were very",
    "Every morning the farmer went to the barn to feed the",
)


@pytest.fixture
def precise():
    with Float64():
        yield


@cache
def tiny(family: str, seed: int = 0):
    return tiny_model(family, "causal" if family in CAUSAL else "seq2seq", seed)


# -- prompts of random tokens --------------------------------------------------------------------------------


def taken(encoding, index: np.ndarray, positions: np.ndarray, ids: np.ndarray):
    """Some tokens of an encoding as an encoding of their own, with other words in the places that are free."""
    kept = {name: getattr(encoding, name)[index] for name in ("segment", "start", "end", "fixed")}
    ordinary = (encoding.start[index] >= 0) & ~kept["fixed"]
    words = np.where(ordinary, ids[: len(index)], encoding.ids[index])
    return replace(
        encoding, ids=words, tokens=tuple(encoding.tokens[i] for i in index), positions=positions, truncated=0, **kept
    )


def drawn(model, generator: np.random.Generator, shortest: int = 6, longest: int = 14):
    """A prompt of random tokens and the model's own next token as target."""
    (base,) = model.encode([raison.Example("good " * 20)])
    size = int(generator.integers(shortest, longest + 1))
    ids = generator.integers(5, model.hf.config.vocab_size, size + 2)
    if model.task == "causal":
        encoding = taken(base, np.arange(size), np.arange(size), ids)
    else:
        written = int(generator.integers(0, 4))
        source = size - 1 - written
        end = len(base) - 2  # the end of the source, then the start of what is written
        index = np.array([*range(source - 1), end, end + 1])
        encoding = taken(base, index, np.array([*range(source), 0]), ids)
        if written:
            more = [int(i) for i in generator.integers(5, model.hf.config.vocab_size, written)]
            encoding = extended(encoding, more, model.codec)
    return encoding, model.predict([encoding])[0].target


def batch_of(aims: list, level: str = "token") -> Batch:
    units = [group(encoding, level, target.free(encoding)) for encoding, target in aims]
    return Batch([e for e, _ in aims], [t for _, t in aims], units)


def found_by(spec: str, model, aims: list, level: str = "token", **options: Any) -> list:
    """Answers of a search; each with what it is about."""
    batch = batch_of(aims, level)
    answers = replace(searches.build(spec), **options)(model, batch)
    return [About(*item) for item in zip(batch.encodings, batch.targets, batch.units, answers, strict=True)]


class About:
    """An answer (or an explanation) with its encoding, target and units."""

    def __init__(self, encoding, target, units, answer):
        self.encoding, self.target, self.units = encoding, target, units
        self.selected, self.order, self.scores = answer.selected, answer.order, answer.scores
        self.certificate = answer.certificate
        self.steps = answer.steps
        self.notes = answer.notes
        self.levels = answer.diagnostics.get("levels", [])

    @property
    def size(self) -> int:
        return int(self.selected.sum())

    @property
    def positions(self) -> list[int]:
        """Token positions in the order of their choice (token units)."""
        return [int(np.flatnonzero(self.units.of == unit)[0]) for unit in self.order]


def rationale(model, text, search: str = "refined", **options: Any):
    """What `raison.rationalize` finds, one or many."""
    found = raison.rationalize(model, text, search, **options)
    wrap = lambda e: About(e.encoding, e.target, e.units, e)  # noqa: E731
    return [wrap(e) for e in found] if isinstance(found, list) else wrap(found)


# -- an evaluation of our own -----------------------------------------------------------------------------------


def asked(model, about, sets: np.ndarray) -> Scored:
    """Sets of units [n u], full length and masked (where the model can), nothing remembered."""
    target = about.target if model.task == "callable" else replace(about.target, output="log_prob")
    keep = np.ones((len(sets), len(about.encoding)), bool)
    for row, chosen in zip(keep, sets, strict=True):
        row[np.isin(about.units.of, np.flatnonzero(~chosen))] = False
    removal = "mask" if "mask" in model.removals else model.removals[0]
    return model.score([Question(about.encoding, target, keep)], removal=removal)[0]


def judged(rule: str, scored: Scored, full: Scored) -> np.ndarray:
    """[n] whether sets are enough, written down anew from what the rules say."""
    name, number = re.fullmatch(r"(\w+)(?:\(\w+=([\d.e-]+)\))?", rule).groups()
    value, whole = scored.value.sum(-1), full.value.sum(-1)
    return {
        "argmax": lambda: (scored.margin > 0).all(-1),
        "probability": lambda: np.exp(value - whole) >= float(number) - 1e-9,
        "share": lambda: whole - value <= (1 - float(number)) * np.abs(whole) + 1e-9,
        "drop": lambda: whole - value <= float(number) + 1e-9,
        "top": lambda: (scored.rank < int(number)).all(-1),
        "penalty": lambda: np.ones(len(value), bool),
    }[name]()


def costs(rule: str, sets: np.ndarray, scored: Scored, enough: np.ndarray) -> np.ndarray:
    """[n] number of units, or λ|S| − log p."""
    if not rule.startswith("penalty"):
        return np.where(enough, sets.sum(1), np.inf)
    return float(re.search(r"=([\d.e-]+)", rule)[1]) * sets.sum(1) - scored.value.sum(-1)


def verify(model, about, tolerance: float = 1e-6) -> Certificate:
    """Every claim of a certificate, recomputed; the certificate is returned."""
    claim, size = about.certificate, len(about.units)
    chosen = np.flatnonzero(about.selected)
    spared = np.repeat(about.selected[None], len(chosen), axis=0)
    spared[np.arange(len(chosen)), chosen] = False
    sets = np.concatenate([about.selected[None], np.ones((1, size), bool), np.zeros((1, size), bool), spared])
    scored = asked(model, about, sets)
    full = Scored(*(column[1:2] for column in (scored.value, scored.rank, scored.margin, scored.predicted)))
    enough = judged(claim.rule, scored, full)
    cost = costs(claim.rule, sets, scored, enough)
    value = scored.value.sum(-1)
    assert claim.sufficient == enough[0], claim
    assert abs(claim.value - value[0]) < tolerance and abs(claim.full_value - value[1]) < tolerance, claim
    assert claim.is_prediction == bool((full.margin > 0).all()) or not full.margin.any()
    looked = claim.irreducible is not None  # where nothing but the whole context was found, nobody looked
    assert looked or about.selected.all()
    if looked:
        assert claim.irreducible == bool(enough[0] and (cost[3:] >= cost[0] - 1e-12).all())
    if claim.probability is not None:
        assert abs(claim.probability - np.exp(value[0])) < tolerance
        assert abs(claim.full_probability - np.exp(value[1])) < tolerance
    assert claim.size == len(chosen) and sorted(about.order.tolist()) == chosen.tolist()
    assert 0 <= claim.lower_bound <= claim.size
    if claim.lower_bound > 0 and not claim.rule.startswith("penalty"):
        assert not enough[2]
    expected = np.zeros(size)
    if looked:
        expected[chosen] = value[0] - value[3:]
    np.testing.assert_allclose(about.scores, expected, atol=tolerance)
    seen = about.target.scope(len(about.encoding))
    given = about.target.given(about.encoding)
    inside = np.isin(about.units.of, chosen) | given
    assert claim.kept_tokens == int((inside & seen).sum()) and claim.context_tokens == int(seen.sum())
    assert claim.evaluations >= 0 and claim.search_tokens >= 0 and claim.check_tokens >= 0
    assert claim.status in ("complete", "budget", "interrupted", "impossible")
    return claim


def subsets(size: int) -> np.ndarray:
    """All sets [2^u u], small ones first."""
    every = chain.from_iterable(combinations(range(size), n) for n in range(size + 1))
    sets = np.zeros((2**size, size), bool)
    for row, members in zip(sets, every, strict=True):
        row[list(members)] = True
    return sets


def brute(model, about) -> tuple[float, np.ndarray]:
    """The lowest cost of all subsets, and the sizes of those that are enough."""
    sets = subsets(len(about.units))
    scored = asked(model, about, sets)
    full = Scored(scored.value[-1:], scored.rank[-1:], scored.margin[-1:], scored.predicted[-1:])
    enough = judged(about.certificate.rule, scored, full)
    return float(costs(about.certificate.rule, sets, scored, enough).min()), sets[enough].sum(1)


# -- A. greedy is the published algorithm ---------------------------------------------------------------------


def literal_of(model, encoding, target, mode: str = "full"):
    free = target.free(encoding)
    if model.task == "causal":
        return greedy_causal(model.hf, encoding.ids, len(encoding), target_id=target.ids[0], free=free, mode=mode)
    source = encoding.segment == 0
    return greedy_seq2seq(
        model.hf, encoding.ids[source].tolist(), encoding.ids[~source].tolist(), target_id=target.ids[0], free=free
    )


def check_greedy_is_literal(model, aims: list, tolerance: float = 1e-6, mode: str = "full") -> None:
    """The same tokens in the same order with the same numbers at every step."""
    for about in found_by("greedy(sufficient=argmax)", model, aims):
        expected = literal_of(model, about.encoding, about.target, mode)
        last = len(about.encoding) - 1
        assert [last, *about.positions] == expected.order, (last, about.positions, expected.order)
        assert expected.reached and about.certificate.sufficient
        steps = about.steps
        if len(steps) < len(expected.steps):  # all that may be removed is kept: known from the whole context
            assert len(steps) == len(expected.steps) - 1 and about.selected.all()
            steps = [*steps, SearchStep(action="add", size=len(about.units), value=about.certificate.value)]
        for ours, theirs in zip(steps, expected.steps, strict=True):
            assert abs(ours.value - theirs.log_prob) < tolerance
            best = sorted(theirs.candidates.values(), reverse=True)[:5]
            for (unit, value), other in zip(ours.candidates, best, strict=False):
                position = int(np.flatnonzero(about.units.of == unit)[0])
                assert abs(value - theirs.candidates[position]) < tolerance and abs(value - other) < tolerance


@pytest.mark.parametrize("family", CAUSAL + SEQ2SEQ)
def test_greedy_is_the_published_algorithm(family, precise):
    generator = np.random.default_rng(0)
    check_greedy_is_literal(tiny(family), [drawn(tiny(family), generator) for _ in range(12)])


def test_greedy_of_a_label_is_the_published_algorithm(precise):
    for seed, text in enumerate((TEXT, "A dull story with good actors", "She said it wasn't bad")):
        model = tiny_model("bert", "classification", seed)
        about = rationale(model, text, "greedy", sufficient="argmax", units="token")

        def score(keep, model=model, about=about):
            target = replace(about.target, output="log_prob")
            scored = model.score([Question(about.encoding, target, keep)], removal="mask")[0]
            return scored.value[:, 0], scored.margin[:, 0] > 0

        expected = greedy_labels(score, len(about.encoding), free=about.target.free(about.encoding))
        assert about.positions == expected.order and expected.reached


# -- B. on real models ------------------------------------------------------------------------------------------


def near_ties(model, texts, mode: str = "sparse", tolerance: float = 1e-3) -> int:
    """How often greedy chooses otherwise than the literal algorithm; allowed only between (almost) equals."""
    aims = [
        (encoding, model.predict([encoding])[0].target) for encoding in model.encode(list(map(raison.Example, texts)))
    ]
    ties = 0
    for about in found_by("greedy(sufficient=argmax)", model, aims):
        expected = literal_of(model, about.encoding, about.target, mode)
        ours, theirs = about.positions, expected.order[1:]
        verify(model, about, tolerance)
        if ours == theirs:
            values = [step.value for step in about.steps]
            wanted = [step.log_prob for step in expected.steps][: len(values)]
            np.testing.assert_allclose(values, wanted, atol=tolerance)
            continue
        ties += 1
        first = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
        if first is not None:
            step = expected.steps[first + 1]
            assert step.candidates[theirs[first]] - step.candidates[ours[first]] < tolerance, (ours, theirs)
        else:  # one stopped earlier: its target was the first choice by a hair
            shorter = min(ours, theirs, key=len)
            chosen = np.isin(np.arange(len(about.units)), [int(about.units.of[t]) for t in shorter])
            assert abs(asked(model, about, chosen[None]).margin.min()) < tolerance, (ours, theirs)
    return ties


@pytest.mark.registry
def test_greedy_on_a_real_model(stories15m):
    assert near_ties(stories15m, OPENINGS[4:7]) <= 1


# -- D. properties ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_a_bigram_model_needs_the_previous_token_only(search):
    hf, tokenizer = tiny_hf("llama", "causal")
    with torch.no_grad():
        for layer in hf.model.layers:
            layer.self_attn.o_proj.weight.zero_()
    model = raison.load(hf, tokenizer)
    found = rationale(model, TEXT, search, target="all")
    assert len(found) == len(found[0].encoding) - 1
    assert not any(about.selected.any() for about in found)
    assert all(about.certificate.kept_tokens == 2 for about in found[1:])  # the start of the text is always there
    own = rationale(model, TEXT, search)
    assert own.certificate.rule == "argmax" and own.size == 0 and own.certificate.optimal


def copier(place: int):
    """A GPT-2 that writes the token at `place` again: one-hot words and positions, one head that looks there."""
    from transformers import GPT2Config, GPT2LMHeadModel

    _, tokenizer = tiny_hf("gpt2", "causal")
    words, places = len(tokenizer), 16
    width = words + places
    config = GPT2Config(vocab_size=words, n_embd=width, n_layer=1, n_head=1, n_positions=places, n_inner=2)
    hf = GPT2LMHeadModel(config).double().eval()
    with torch.no_grad():
        for name, weight in hf.named_parameters():
            weight.fill_(1.0 if "ln_" in name and name.endswith("weight") else 0.0)
        hf.transformer.wte.weight[:, :words] = torch.eye(words)
        hf.transformer.wpe.weight[:, words:] = torch.eye(places)
        attention = hf.transformer.h[0].attn
        attention.c_attn.bias[words + place] = 200.0  # every query asks for this position
        attention.c_attn.weight[words:, width + words : 2 * width] = torch.eye(places, width - words)
        attention.c_attn.weight[:words, 2 * width : 2 * width + words] = torch.eye(words)
        attention.c_proj.weight[:words, :words] = 3.0 * torch.eye(words)
    hf.tie_weights()
    return raison.load(hf, tokenizer)


@pytest.mark.parametrize("place", [0, 3])
def test_a_copy_model_needs_two_tokens(place):
    model = copier(place)
    generator = np.random.default_rng(place)
    (base,) = model.encode([raison.Example("The old town lies on")])
    ids = generator.permutation(np.arange(10, 300))[: len(base)]
    encoding = replace(base, ids=ids)
    target = model.predict([encoding])[0].target
    assert target.ids[0] == ids[place]
    for search in ("greedy", "refined", "exact", "by_order"):
        (about,) = found_by(search, model, [(encoding, target)])
        assert about.positions == [place] and about.certificate.kept_tokens == 2
        assert verify(model, about).irreducible
    assert found_by("exact", model, [(encoding, target)])[0].certificate.optimal


def test_a_function_that_reads_one_word():
    def third(texts):
        return [[float("lies" in text.split()), 0.5] for text in texts]

    for search in ("greedy", "refined", "exact", "by_order", "hierarchical"):
        about = rationale(third, TEXT, search)
        assert [about.units.names[u] for u in about.order] == ["lies"] and about.certificate.irreducible
    assert rationale(third, TEXT, "refined").certificate.optimal


@pytest.mark.parametrize("search", ["greedy", "refined", "exact(evaluations=300)", "by_order", "hierarchical"])
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


@pytest.mark.parametrize("family", ["gpt2", "mistral", "t5"])
def test_no_prefix_of_a_greedy_rationale_is_enough(family, precise):
    model, generator = tiny(family), np.random.default_rng(1)
    for about in found_by("greedy(sufficient=argmax)", model, [drawn(model, generator) for _ in range(8)]):
        growing = np.zeros((len(about.order) + 1, len(about.units)), bool)
        for row in range(1, len(growing)):
            growing[row, about.order[:row]] = True
        enough = (asked(model, about, growing).margin > 0).all(-1)
        assert enough[-1] and not enough[:-1].any()
        assert [step.size for step in about.steps] == list(range(len(about.steps)))


@pytest.mark.parametrize("family", ["gpt2", "qwen", "gemma", "bart"])
def test_exact_is_brute_force_and_nobody_is_shorter(family, precise):
    """|exact| ≤ |refined| and |greedy|, all enough; nothing can be spared of a refined rationale."""
    model, generator = tiny(family), np.random.default_rng(2)
    aims = [drawn(model, generator, 7, 9) for _ in range(6)]
    found = {name: found_by(f"{name}(sufficient=argmax)", model, aims) for name in ("exact", "refined", "greedy")}
    for exact, refined, greedy in zip(*found.values(), strict=True):
        least, sizes = brute(model, exact)
        assert len(exact.units) <= 8 and least == sizes.min() == exact.size
        claim = verify(model, exact)
        assert claim.optimal and claim.lower_bound == exact.size and claim.irreducible
        for other in (refined, greedy):
            claim = verify(model, other)
            assert claim.sufficient and exact.size <= other.size
            assert claim.lower_bound <= least and (not claim.optimal or other.size == least)
        assert refined.certificate.irreducible  # verified above by leaving out each unit
    assert sum(about.size for about in found["refined"]) <= sum(about.size for about in found["greedy"])


def test_exact_that_runs_out_says_how_far_it_came(precise):
    model, generator = tiny("qwen"), np.random.default_rng(3)
    aims = [drawn(model, generator, 12, 14) for _ in range(6)]
    for whole, cut in zip(found_by("exact", model, aims), found_by("exact(evaluations=100)", model, aims), strict=True):
        claim = verify(model, cut)
        assert claim.sufficient and claim.lower_bound <= whole.size <= cut.size
        assert claim.evaluations <= 100
        if claim.status == "budget":
            assert not claim.optimal or cut.size == whole.size


def test_a_lower_bound_is_never_too_high():
    """Three words are enough, but everything leads to eight others; the budget ends at every stage of the proof."""
    words = "a b c d e f g h i j k l".split()

    def score(texts):
        kept = [set(text.split()) for text in texts]
        value = [1.0 if {"b", "f", "k"} <= s or len(s) >= 8 else len(s - {"b", "f", "k"}) / 20 for s in kept]
        return [[v, 0.9] for v in value]

    seen = set()
    for budget in range(20, 400, 20):
        about = rationale(score, " ".join(words), f"exact(evaluations={budget})")
        claim = verify(raison.load(score), about)
        assert claim.lower_bound <= 3 and (claim.status == "budget" or claim.size == 3)
        assert claim.optimal == (claim.status == "complete")
        seen.add(claim.lower_bound)
    assert 3 in seen
    whole = rationale(score, " ".join(words), "exact").certificate
    assert whole.size == whole.lower_bound == 3 and whole.optimal


def test_refined_removes_what_has_become_superfluous():
    """One word helps most at first, and not at all when the two that matter are there."""

    def score(texts):
        worth = {"a": 0.5, "b": 0.3, "c": 0.3, "ab": 0.7, "ac": 0.7, "bc": 1.0, "abc": 1.0}
        return [[worth.get("".join(sorted(set(text.split()) & set("abc"))), 0.0), 0.9] for text in texts]

    greedy, refined = (rationale(score, "x a y b z c", search) for search in ("greedy", "refined"))
    names = lambda about: [about.units.names[u] for u in about.order]  # noqa: E731
    assert names(greedy) == ["a", "b", "c"] and not greedy.certificate.irreducible
    assert names(refined) == ["b", "c"] and refined.certificate.optimal


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
        for limits in (dict(room=1), dict(room=20_000), dict(room=0), dict(limit=0), dict(limit=0, room=0)):
            with monkeypatch.context() as patch:
                patch.setattr("raison.rationales.search.Memory", lambda limits=limits: Memory(**limits))
                assert [about.positions for about in found_by(search, model, aims)] == expected


def test_all_targets_together_or_one_by_one(precise):
    model = tiny("gpt2")
    together = rationale(model, TEXT, target="all")
    for place, about in enumerate(together, start=1):
        if len(about.units):
            alone = rationale(model, TEXT, target=place)
            assert alone.positions == about.positions and alone.certificate.rule == about.certificate.rule
        verify(model, about)


def test_of_equals_the_lowest_position_wins():
    """Any two words are enough, and all are worth the same."""

    def two(texts):
        return [[min(len(text.split()), 2) / 2, 0.75] for text in texts]

    for search in ("greedy", "refined", "exact", "by_order"):
        about = rationale(two, "one two three four five", search)
        assert about.order.tolist() == [0, 1], search


def test_a_unit_that_hurts_is_left_out():
    def score(texts):  # "not" takes the answer away
        return [[float("good" in text) - 2 * ("not" in text.split()), 0.5] for text in texts]

    about = rationale(score, "a good film it is", "greedy")
    assert [about.units.names[u] for u in about.order] == ["good"]


def test_the_users_model_is_as_it_was():
    for model in (tiny("gpt2"), tiny("t5"), tiny_model("bert", "classification")):
        before = state_of(model)
        for search in searches:
            raison.rationalize(model, "The old town", f"{search}(evaluations=100)")
        assert state_of(model) == before


# -- E. when is it enough? ---------------------------------------------------------------------------------------

RULES = ["argmax", "probability(tau=0.5)", "probability(tau=1)", "share(tau=0.8)", "top(k=3)", "drop(nats=0.5)"]
RULES += ["penalty(weight=0.2)", "penalty(weight=2)"]


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
@pytest.mark.parametrize("rule", RULES)
def test_every_rule_holds_for_what_it_certifies(rule, search, precise):
    model, generator = tiny("gpt2"), np.random.default_rng(5)
    for about in found_by(search, model, [drawn(model, generator, 7, 9) for _ in range(4)], sufficient=rule):
        claim = verify(model, about)
        least, _ = brute(model, about)
        assert claim.sufficient and rules.build(claim.rule) == rules.build(rule)
        weight = rules.build(rule).weight if rule.startswith("penalty") else None
        cost = weight * about.size - claim.value if weight else about.size
        assert cost >= least - 1e-9
        if search == "exact" or claim.optimal:
            assert cost == pytest.approx(least, abs=1e-9) and claim.optimal
        if not weight:
            assert claim.lower_bound <= least


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_nothing_is_called_optimal_that_is_not(search):
    """Two words help together and hurt alone, so the empty set looks best from near by."""

    def score(texts):
        both = [("b" in text.split(), "e" in text.split()) for text in texts]
        return [-0.01 if b and e else -5.0 if b or e else -3.0 for b, e in both]

    about = rationale(score, "a b c d e f", search, sufficient="penalty(weight=0.5)")
    least, _ = brute(raison.load(score), about)
    assert not about.certificate.optimal or 0.5 * about.size - about.certificate.value == pytest.approx(least)
    assert search != "exact" or about.certificate.optimal


def test_a_penalty_on_values_above_zero():
    """λ|S| − value has no floor where values are no log-probabilities; exact may not stop early."""

    def score(texts):
        return [10.0 if {"b", "e"} == set(text.split()) else 0.0 for text in texts]

    about = rationale(score, "a b c d e f", "exact", sufficient="penalty(weight=0.5)")
    least, _ = brute(raison.load(score), about)
    assert not about.certificate.optimal or 0.5 * about.size - about.certificate.value == pytest.approx(least)


@pytest.mark.parametrize(
    "wrong",
    "probability(tau=0) probability(tau=1.5) probability(tau=-1) probability(tau=high) share(tau=0) top(k=0) "
    "top(k=1.5) top(k=many) drop(nats=-1) penalty(weight=0) penalty(weight=-0.1) argmax(tau=1) nonsense "
    "probability(tau= probability(0.9,0.8)".split(),
)
def test_wrong_rules_are_refused_with_a_sentence(wrong):
    with pytest.raises(InputError) as refused:
        raison.rationalize(tiny("gpt2"), TEXT, sufficient=wrong)
    assert str(refused.value).endswith((".", "?"))


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


@pytest.mark.parametrize("search", ["greedy", "refined", "exact"])
def test_a_contrast_asks_what_makes_one_beat_the_other(search, precise):
    """The target need not be the model's choice, as long as it beats the contrast."""
    model = tiny("gpt2")
    (encoding,) = model.encode([raison.Example("The old town")])
    logits = outcomes_of(model.runner, [encoding], [model.next_target(encoding, 0)])[0][0]
    ranked = [int(i) for i in logits.argsort(descending=True)]
    for better, worse in ((ranked[3], ranked[20]), (ranked[1], ranked[2]), (ranked[0], ranked[300])):
        about = rationale(model, "The old town", search, target=[better], contrast=[worse])
        claim = verify(model, about)
        assert claim.rule == "argmax" and claim.is_prediction and claim.sufficient and claim.probability is None
        kept = [*np.flatnonzero(np.isin(about.units.of, np.flatnonzero(about.selected))), len(encoding) - 1]
        row = logits_of(model, encoding.ids, kept)
        assert row[better] > row[worse]
        assert search != "exact" or brute(model, about)[0] == about.size
    other = rationale(model, "The old town", search, target=[ranked[20]], contrast=[ranked[3]])
    assert not verify(model, other).is_prediction and other.notes


def logits_of(model, ids, kept) -> torch.Tensor:
    """What the plain model says from the kept tokens at their own positions."""
    places = torch.tensor([sorted(int(k) for k in kept)])
    words = torch.tensor([list(ids)])[:, places[0]]
    with torch.no_grad():
        return model.hf(input_ids=words, position_ids=places, attention_mask=torch.ones_like(words)).logits[0, -1]


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
    assert (np.flatnonzero(written.units.of >= 0) < len(written.encoding) - len(written.target.ids)).all()


@pytest.mark.parametrize("family", SEQ2SEQ)
def test_targets_of_an_encoder_decoder(family, precise):
    hf, tokenizer = tiny_hf(family, "seq2seq")
    hf.generation_config.max_new_tokens = 3
    model = raison.load(hf, tokenizer)
    whole = rationale(model, "an old town", "greedy")
    assert len(whole.target.ids) > 1 and verify(model, whole).is_prediction
    for place, about in enumerate(rationale(model, "an old town", "greedy", target="all")):
        claim = verify(model, about)
        assert claim.is_prediction and claim.sufficient and about.target.ids[0] == whole.target.ids[place]
    assert verify(model, rationale(model, "an old town", target=1)).is_prediction
    assert verify(model, rationale(model, "an old town", "greedy", target="dull")).sufficient


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_labels_spans_and_tags(search, precise):
    bert = tiny_model("bert", "classification")
    assert verify(bert, rationale(bert, TEXT, search)).is_prediction
    assert verify(bert, rationale(bert, (TEXT, "Nobody expected it"), search)).sufficient
    for label in range(3):
        assert verify(bert, rationale(bert, TEXT, search, target=label)).is_prediction in (True, False)
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
    assert awful.certificate.rule == "share(tau=0.9)" and awful.notes and not awful.certificate.is_prediction
    assert [awful.units.names[u] for u in awful.order] == ["bad"]

    def length(texts):
        return [float(sum("x" in word for word in text.split())) for text in texts]

    words = "x1 a x2 b x3 c x4 d x5 e x6 x7 x8 x9 x10"
    for search in ("greedy", "refined", "exact"):
        about = rationale(length, words, search)
        claim = verify(raison.load(length), about)
        assert claim.rule == "share(tau=0.9)" and about.size == 9 and not about.notes


@pytest.mark.parametrize("level", ["token", "word", "sentence", "passage", "slot"])
def test_units_of_every_level(level, precise):
    text = raison.Example.from_template(
        "Read: {first}\n\n{second} What is it?", first="It is a hill. It is old.", second="The film is good."
    )
    hf, tokenizer = tiny_hf("llama", "causal")
    hf.config.max_position_embeddings = 256
    function = raison.load(lambda texts: [[float("hill" in t), 0.5] for t in texts])
    for model in (raison.load(hf, tokenizer), tiny_model("bert", "classification"), function):
        for search in ("refined", "hierarchical"):
            about = rationale(model, text, search, units=level)
            assert about.units.level == level and verify(model, about).sufficient
    kept = about.units.names[about.order[0]]
    wanted = {"sentence": "It is a hill.", "passage": "It is a hill. It is old.", "slot": "first"}
    assert kept == wanted.get(level, "hill")


def long_text() -> tuple[str, int]:
    """Passages of sentences; two words far apart matter."""
    filler = "The old town lies on a hill. Nobody expected it. "
    passages = [filler * 3 for _ in range(12)]
    passages[3] = filler + "The needle is here. " + filler
    passages[8] = "And a thread is there. " + filler
    return "\n\n".join(passages), len(passages)


def test_hierarchical_finds_two_words_in_a_long_text():
    asked_texts = []

    def sew(texts):
        asked_texts.extend(texts)
        return [[float("needle" in t) + float("thread" in t), 1.5] for t in texts]

    text, count = long_text()
    model = raison.load(sew)
    about = rationale(model, text, "hierarchical", units="word")
    assert sorted(about.units.names[u] for u in about.order) == ["needle", "thread"]
    assert verify(model, about).irreducible and len(asked_texts) < len(about.units)
    levels = nested(about)
    assert levels[0] == {"level": "passage", "kept": 2, "of": count}
    assert [level["level"] for level in levels] == ["passage", "sentence", "word"]


def nested(about) -> list[dict[str, Any]]:
    """The levels of a hierarchical search; what is selected stands in what each level kept."""
    levels = about.levels
    free = about.units.of >= 0
    for level in levels:
        of = group(about.encoding, level["level"], free).of
        touched = np.unique(of[np.isin(about.units.of, np.flatnonzero(about.selected))])
        assert len(touched) <= level["kept"] <= level["of"]
    return levels


@pytest.mark.parametrize("search", ["hierarchical", "hierarchical(search=greedy)", "hierarchical(search=exact)"])
def test_hierarchical_on_a_language_model(search, precise):
    hf, tokenizer = tiny_hf("llama", "causal", seed=1)
    hf.config.max_position_embeddings = 512
    model = raison.load(hf, tokenizer)
    text = "\n\n".join(["The film is good. Nobody expected it.", "She said it. He left.", "Where is the town? In"])
    for level in ("word", "token"):
        about = rationale(model, text, search, units=level)
        assert verify(model, about).sufficient
        nested(about)


@pytest.mark.parametrize("level", ["token", "word"])
def test_windows_of_long_contexts(level, precise):
    """More units than are searched whole: windows at the end come first, and the answer is still verified."""
    hf, tokenizer = tiny_hf("gpt_neox", "causal", seed=2)
    hf.config.max_position_embeddings = 512
    model = raison.load(hf, tokenizer)
    about = rationale(model, "The old town lies on a hill and nobody expected it. " * 4, units=level)
    claim = verify(model, about)
    assert claim.sufficient and claim.irreducible
    short = rationale(model, "The old town lies on a hill", "refined(short=2)", units=level)
    assert verify(model, short).irreducible


def test_a_target_without_anything_to_remove():
    """The second token follows one token only, which can't be removed."""
    first = rationale(tiny("gpt2"), TEXT, target="all")[0]
    assert len(first.units) == 0 and first.certificate.sufficient and first.certificate.optimal


def test_explanations_of_rationales_read_back():
    found = raison.rationalize(tiny("gpt2"), TEXT)
    assert raison.Explanation.from_json(found.to_json()) == found
    assert found.method == "refined" and found.removal == "delete" and found.target.output == "log_prob"


# -- G. certificates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_a_spent_budget_is_said(search):
    model = tiny("qwen")
    about = rationale(model, "The film is a lovely surprise", f"{search}(evaluations=3)")
    claim = verify(model, about)
    assert claim.status == "budget" and claim.evaluations <= 3 and claim.sufficient
    assert rationale(model, "The film is a lovely surprise", search).certificate.status == "complete"


@pytest.mark.parametrize("search", ["greedy", "refined", "exact", "by_order", "hierarchical"])
def test_what_is_impossible_is_said(search, precise):
    """Of a function that never gives the answer, and of a model whose whole context does not."""

    def never(texts):
        return [[0.0, 1.0 + len(text)] for text in texts]

    about = rationale(never, TEXT, search, target=0, sufficient="argmax")
    claim = about.certificate
    assert claim.status == "impossible" and not claim.sufficient and not claim.optimal and not claim.is_prediction
    assert not claim.irreducible
    model = tiny("gpt2")
    (encoding,) = model.encode([raison.Example(TEXT)])
    last = int(outcomes_of(model.runner, [encoding], [model.next_target(encoding, 0)])[0][0].argmin())
    about = rationale(model, TEXT, search, target=[last], sufficient="argmax")
    claim = verify(model, about)
    if not claim.sufficient:
        assert claim.status == "impossible" and not claim.optimal


def test_a_target_that_is_not_the_models_choice():
    model = tiny("gpt2")
    about = rationale(model, TEXT, target=[9])
    claim = verify(model, about)
    assert not claim.is_prediction and claim.rule == "probability(tau=0.9)" and claim.status == "complete"
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


@pytest.mark.parametrize("turn", [2, 3, 4])  # the first call asks about whole texts, and there is nothing yet
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
        raison.rationalize(interrupted_at(model, len(alone) + 2), ["The film is good", "She said it was bad"], "greedy")
    assert [found.encoding.texts[0] for found in stopped.value.partial] == ["The film is good", "She said it was bad"]
    assert stopped.value.partial[0].certificate.status == "complete"


def counted(model):
    """The same model, and a list that grows with each call of its `score`."""
    counting, calls = copy.copy(model), []
    counting.score = lambda *args, **kwargs: (calls.append(1), model.score(*args, **kwargs))[1]
    return counting, calls


@pytest.mark.parametrize("behind", [0, 1])  # while each passage is taken away; while the certificate is made
def test_an_interruption_behind_the_search_does_not_lose_what_was_found(behind):
    model = reader()
    asked = ("who?", {"a": "a film", "b": "a story"}, "hierarchical")
    counting, calls = counted(model)
    whole = raison.ground(counting, *asked, answer="film")
    with pytest.raises(Interrupted) as stopped:
        raison.ground(interrupted_at(model, len(calls) - behind), *asked, answer="film")
    (found,) = stopped.value.partial
    assert found.selected.tolist() == whole.selected.tolist() and found.grounding is None
    told = {name: getattr(found.certificate, name) for name in ("status", "sufficient", "size", "irreducible")}
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


# -- H. answers over passages ------------------------------------------------------------------------------------

LIGHTHOUSE = (
    "The lighthouse on Gull Island was built in 1874. It is painted red and white. Its lamp can be seen from twenty "
    "miles away.",
    "Anna Brandt was the last keeper of the lighthouse. She lived there with her two dogs until 1962. After that the "
    "lamp was automated.",
    "A ferry leaves for Gull Island every morning at nine. The crossing takes forty minutes. Tickets are sold on "
    "board.",
)


@cache
def reader():
    hf, tokenizer = tiny_hf("llama", "causal", seed=3)
    hf.config.max_position_embeddings = 512
    return raison.load(hf, tokenizer)


def test_an_answer_names_its_passages(precise):
    passages = {"town": "It lies on a hill. It is old.", "film": "The film is good.", "river": "It begins there."}
    found = raison.ground(reader(), "Where is it?", passages, generate=3)
    about = found.grounding
    assert verify(reader(), About(found.encoding, found.target, found.units, found)).sufficient
    assert [passage.name for passage in about.passages] == list(passages)
    kept = found.units.keep(found.selected)
    for passage, text in zip(about.passages, passages.values(), strict=True):
        assert found.encoding.texts[0][passage.start : passage.end] == text
        inside = (found.encoding.start >= passage.start) & (found.encoding.end <= passage.end)
        assert passage.selected == bool((inside & kept & (found.units.of >= 0)).any())
        assert isinstance(passage.necessary, bool)
    assert about.needs_context == bool(found.selected.any()) and about.question == "Where is it?"
    assert about.statement.endswith(".") and found.units.level == "sentence"
    assert raison.Explanation.from_json(found.to_json()) == found


def test_an_answer_may_be_given(precise):
    found = raison.ground(reader(), "Where is it?", ["It lies on a hill.", "It is old."], answer="on a hill")
    assert found.target.text.strip() == "on a hill"
    assert [passage.name for passage in found.grounding.passages] == ["1", "2"]


def test_a_passage_stands_where_it_stands():
    """Its words may also occur in the instruction above it."""
    for text in ("few words", "Answer the question"):
        found = raison.ground(reader(), "What?", [text], generate=2)
        (slot,) = found.encoding.slots
        whole = found.encoding.texts[0]
        assert whole[: slot.start].endswith(".\n\n") and whole[slot.end :].startswith("\n\nQuestion")


def test_a_reader_of_spans_is_asked_too():
    model = tiny_model("bert", "qa")
    found = raison.ground(model, "Where is it?", ["It lies on a hill.", "It is old."])
    assert found.target.kind == "span"
    assert verify(model, About(found.encoding, found.target, found.units, found)).sufficient


@pytest.mark.parametrize(
    ("question", "passages"),
    [("", ["A town."]), ("  ", ["A town."]), (None, ["A town."])]
    + [("What?", passages) for passages in (["A town.", " "], "A town.", [], {"a": ""}, [None])],
)
def test_questions_without_something_to_answer_from(question, passages):
    for model in (reader(), tiny_model("bert", "qa")):
        with pytest.raises(InputError):
            raison.ground(model, question, passages)


def test_a_classifier_does_not_answer():
    with pytest.raises(InputError, match="answer"):
        raison.ground(tiny_model("bert", "classification"), "What?", ["A town."])


@pytest.mark.registry
def test_an_answer_rests_on_one_sentence(smollm2):
    found = raison.ground(smollm2, "What colour is the lighthouse?", LIGHTHOUSE)
    about = found.grounding
    assert [name for name, kept in zip(found.units.names, found.selected, strict=True) if kept] == [
        "It is painted red and white."
    ]
    assert [passage.selected for passage in about.passages] == [True, False, False]
    assert about.passages[0].necessary and about.needs_context
    assert "red and white" in about.answer and about.statement.startswith("The answer rests on 1 ")
    assert verify(smollm2, About(found.encoding, found.target, found.units, found), 1e-3).sufficient


@pytest.mark.registry
def test_an_answer_that_needs_no_context(smollm2):
    found = raison.ground(smollm2, "What is the capital of France?", LIGHTHOUSE)
    about = found.grounding
    assert "Paris" in about.answer and not about.needs_context and not found.selected.any()
    assert "no context" in about.statement


# -- I. the example everybody sees ----------------------------------------------------------------------------------


@pytest.mark.registry
def test_the_supreme_court(smollm2):
    text = "The Supreme Court on Tuesday rejected a challenge to the"
    greedy, refined = (rationale(smollm2, text, search) for search in ("greedy", "refined"))
    names = lambda about: {about.units.names[u] for u in about.order}  # noqa: E731
    assert names(greedy) == {"The", "Supreme", "Court", "challenge"} and greedy.certificate.kept_tokens == 5
    assert names(refined) == {"The", "Court", "challenge"} and refined.certificate.kept_tokens == 4
    assert greedy.encoding.tokens[-1].strip() == "the" and not greedy.certificate.irreducible
    assert verify(smollm2, refined, 1e-3).irreducible
