"""Searches for rationales on tiny models, and an evaluation of what they certify that shares no code with them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import chain, combinations
from typing import Any

import numpy as np

import raison
from raison.core.findings import Certificate, SearchStep
from raison.core.registry import searches
from raison.core.units import group_tokens
from raison.methods.base import Batch
from raison.models.protocol import Question, Scored
from raison.models.tasks.continuation import extended_encoding
from raison.testing import FAMILIES, tiny_hf, tiny_model
from tests.oracles.rationales import greedy_causal, greedy_seq2seq

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
        encoding,
        ids=words,
        tokens=tuple(encoding.tokens[i] for i in index),
        positions=positions,
        truncated=0,
        **kept,
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
            encoding = extended_encoding(encoding, more, model.codec)
    return encoding, model.predict([encoding])[0].target


def batch_of(aims: list, level: str = "token") -> Batch:
    units = [group_tokens(encoding, level, target.free(encoding)) for encoding, target in aims]
    return Batch([e for e, _ in aims], [t for _, t in aims], units)


def found_by(spec: str, model, aims: list, level: str = "token", **options: Any) -> list:
    """Answers of a search; each with what it is about."""
    batch = batch_of(aims, level)
    answers = replace(searches.build(spec), **options)(model, batch)
    return [
        About(*item)
        for item in zip(batch.encodings, batch.targets, batch.units, answers, strict=True)
    ]


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
    sets = np.concatenate(
        [about.selected[None], np.ones((1, size), bool), np.zeros((1, size), bool), spared]
    )
    scored = asked(model, about, sets)
    full = Scored(
        *(column[1:2] for column in (scored.value, scored.rank, scored.margin, scored.predicted))
    )
    enough = judged(claim.rule, scored, full)
    cost = costs(claim.rule, sets, scored, enough)
    value = scored.value.sum(-1)
    assert claim.sufficient == enough[0], claim
    assert (
        abs(claim.value - value[0]) < tolerance and abs(claim.full_value - value[1]) < tolerance
    ), claim
    assert claim.is_prediction == bool((full.margin > 0).all()) or not full.margin.any()
    looked = (
        claim.irreducible is not None
    )  # where nothing but the whole context was found, nobody looked
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
    assert claim.kept_tokens == int((inside & seen).sum()) and claim.context_tokens == int(
        seen.sum()
    )
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
        return greedy_causal(
            model.hf, encoding.ids, len(encoding), target_id=target.ids[0], free=free, mode=mode
        )
    source = encoding.segment == 0
    return greedy_seq2seq(
        model.hf,
        encoding.ids[source].tolist(),
        encoding.ids[~source].tolist(),
        target_id=target.ids[0],
        free=free,
    )


def check_greedy_is_literal(model, aims: list, tolerance: float = 1e-6, mode: str = "full") -> None:
    """The same tokens in the same order with the same numbers at every step."""
    for about in found_by("greedy(sufficient=argmax)", model, aims):
        expected = literal_of(model, about.encoding, about.target, mode)
        last = len(about.encoding) - 1
        assert [last, *about.positions] == expected.order, (last, about.positions, expected.order)
        assert expected.reached and about.certificate.sufficient
        steps = about.steps
        if len(steps) < len(
            expected.steps
        ):  # all that may be removed is kept: known from the whole context
            assert len(steps) == len(expected.steps) - 1 and about.selected.all()
            steps = [
                *steps,
                SearchStep(action="add", size=len(about.units), value=about.certificate.value),
            ]
        for ours, theirs in zip(steps, expected.steps, strict=True):
            assert abs(ours.value - theirs.log_prob) < tolerance
            best = sorted(theirs.candidates.values(), reverse=True)[:5]
            for (unit, value), other in zip(ours.candidates, best, strict=False):
                position = int(np.flatnonzero(about.units.of == unit)[0])
                assert (
                    abs(value - theirs.candidates[position]) < tolerance
                    and abs(value - other) < tolerance
                )


# -- B. on real models ------------------------------------------------------------------------------------------


def near_ties(model, texts, mode: str = "sparse", tolerance: float = 1e-3) -> int:
    """How often greedy chooses otherwise than the literal algorithm; allowed only between (almost) equals."""
    aims = [
        (encoding, model.predict([encoding])[0].target)
        for encoding in model.encode(list(map(raison.Example, texts)))
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
        first = next(
            (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None
        )
        if first is not None:
            step = expected.steps[first + 1]
            assert step.candidates[theirs[first]] - step.candidates[ours[first]] < tolerance, (
                ours,
                theirs,
            )
        else:  # one stopped earlier: its target was the first choice by a hair
            shorter = min(ours, theirs, key=len)
            chosen = np.isin(np.arange(len(about.units)), [int(about.units.of[t]) for t in shorter])
            assert abs(asked(model, about, chosen[None]).margin.min()) < tolerance, (ours, theirs)
    return ties


@cache
def reader():
    hf, tokenizer = tiny_hf("llama", "causal", seed=3)
    hf.config.max_position_embeddings = 512
    return raison.load(hf, tokenizer)
