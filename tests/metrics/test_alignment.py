"""Alignment error rates, links and crossovers, against literal code and counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.metrics.alignment import (
    Crossover,
    aer,
    aer_per_word,
    count_crossovers_of_target,
    crossover_rates_of_rationales,
    link_scores,
    mean_link_iou,
    top_1_of_aligned_words,
    top_1_of_target_subwords,
)
from raison.metrics.base import Share

SURE = {(0, 0), (1, 1), (2, 3)}
POSSIBLE = {(2, 2), (3, 3)}
FOUND = {(0, 0), (1, 1), (3, 3), (0, 3)}


def random_links(generator, count=6):
    return {
        (int(i), int(j))
        for i, j in generator.integers(0, 4, (int(generator.integers(0, count)), 2))
    }


def test_error_rate_by_hand():
    """|A∩S| = 2, |A∩P| = 3 (with the sure ones), |A| = 4, |S| = 3: 1 − 5/7."""
    assert float(aer(FOUND, SURE, POSSIBLE)) == pytest.approx(1 - 5 / 7)
    assert aer(FOUND, SURE, POSSIBLE | SURE) == aer(FOUND, SURE, POSSIBLE)  # S ⊆ P, said or not


def test_error_rate_of_the_best_and_the_worst():
    assert float(aer(SURE, SURE, POSSIBLE)) == 0
    assert float(aer(SURE | POSSIBLE, SURE, POSSIBLE)) == 0  # possible links may be found
    assert float(aer({(9, 9)}, SURE, POSSIBLE)) == 1
    assert float(aer((), SURE)) == 1
    assert aer((), (), POSSIBLE) == Share(0, 0)


def test_error_rate_of_a_corpus_is_pooled():
    first, second = aer({(0, 0)}, {(0, 0)}), aer({(5, 5)}, {(i, i) for i in range(3)})
    assert (first.part + second.part) / (first.whole + second.whole) == pytest.approx(1 - 2 / 6)
    assert (float(first) + float(second)) / 2 == 0.5  # what the mean would be


def test_error_rate_is_between_0_and_1_and_does_not_depend_on_names():
    generator = np.random.default_rng(0)
    for _ in range(200):
        a, s, p = (random_links(generator) for _ in range(3))
        found = aer(a, s, p)
        assert 0 <= found.part <= found.whole
        names = generator.permutation(4)
        moved = [{(int(names[i]), j) for i, j in links} for links in (a, s, p)]
        assert aer(*moved) == found
        # as sklearn-like counting over all cells of the table
        cells = [(i, j) for i in range(4) for j in range(4)]
        hits = sum((c in a and c in s) + (c in a and (c in p or c in s)) for c in cells)
        total = sum((c in a) + (c in s) for c in cells)
        if total:
            assert float(found) == pytest.approx(1 - hits / total)


def test_error_rate_per_word_as_in_p0():
    """Word 0: A = S = {0}: 1 − 1/2. Word 1 likewise. Word 2: only possible, nothing found: 1. Word 3: S = {2}, P = {3},
    A = {0, 3}: 1 − 1/3."""
    assert aer_per_word(FOUND, SURE, POSSIBLE) == pytest.approx([1 / 2, 1 / 2, 1, 2 / 3])
    assert aer_per_word(FOUND, SURE, POSSIBLE | SURE) == aer_per_word(FOUND, SURE, POSSIBLE)
    assert aer_per_word(FOUND, ()) == []


def test_error_rate_per_word_is_too_high():
    """The reason why both are reported: never below the standard rate of the same word."""
    generator = np.random.default_rng(1)
    for _ in range(100):
        a, s, p = ({(i, 0) for i, _ in random_links(generator)} for _ in range(3))
        per_word = aer_per_word(a, s, p)
        if per_word and (a or s):
            assert per_word[0] >= float(aer(a, s, p)) - 1e-12
            assert per_word[0] == pytest.approx(
                1 - (len(a & (p - s)) + len(a & s)) / (len(a) + len(s))
            )


def test_links():
    found = {name: float(share) for name, share in link_scores(FOUND, SURE, POSSIBLE).items()}
    assert found["precision"] == found["precision_possible"] == 3 / 4
    assert found["recall"] == 3 / 5 and found["recall_sure"] == 2 / 3
    assert found["f1"] == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert all(float(share) == 1 for share in link_scores(SURE, SURE).values())


def test_links_are_scikit_learns():
    sklearn = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(2)
    cells = [(i, j) for i in range(4) for j in range(4)]
    for _ in range(50):
        a, s = random_links(generator) | {(0, 0)}, random_links(generator) | {(1, 1)}
        p, r, f, _ = sklearn.precision_recall_fscore_support(
            [c in s for c in cells], [c in a for c in cells], average="binary"
        )
        found = link_scores(a, s)
        np.testing.assert_allclose(
            [float(found[n]) for n in ("precision", "recall", "f1")], [p, r, f]
        )


def test_iou_of_words():
    """Word 0: {0} and {0}: 1. Word 1: 1. Word 2: {} and {2}: 0. Word 3: {0, 3} and {2, 3}: 1/3."""
    assert mean_link_iou(FOUND, SURE | POSSIBLE) == Share(pytest.approx(7 / 3), 4)
    assert mean_link_iou(FOUND | {(7, 9)}, SURE | POSSIBLE).whole == 4  # word 9 has no gold


def test_top_1():
    gold = SURE | POSSIBLE
    assert top_1_of_aligned_words({0: 0, 1: 0, 3: 3}, gold) == Share(
        2, 4
    )  # word 1 is wrong, word 2 has none
    assert top_1_of_aligned_words({0: 0, 9: 9}, {(0, 0)}) == Share(1, 1)  # word 9 has no gold


def test_top_1_of_subwords_grows():
    """Word 3 has three subwords: miss, hit, miss; P0 counts 0, 1, 1. Word 0 has one: hit."""
    assert top_1_of_target_subwords({0: [0], 3: [0, 2, 0]}, SURE) == Share(3, 4)
    assert top_1_of_target_subwords({0: [0], 1: [1], 3: [2]}, SURE) == top_1_of_aligned_words(
        {0: 0, 1: 1, 3: 2}, SURE
    )


# -- crossovers ---------------------------------------------------------------------------------------------

PAIR = dict(source_break=4, target_break=3, end=9)


def test_crossover_before_the_boundary():
    """Source tokens 4, 5 are of the other sentence; 9 is the end token, 3 is not; the target side is not asked."""
    assert count_crossovers_of_target([0, 3, 4, 5, 9], [0, 1, 2], index=2, **PAIR) == Crossover(
        2, None
    )
    assert count_crossovers_of_target([0, 3, 9], [], index=0, **PAIR) == Crossover(0, None)


def test_crossover_behind_the_boundary():
    """Target token 3 stands at 4 and is the first of its sentence: positions 1, 2, 3 are of the other one."""
    assert count_crossovers_of_target([0, 3, 4, 9], [0, 1, 3, 4], index=4, **PAIR) == Crossover(
        2, 2
    )
    # the token before the first target of the second sentence is forced upon it, and so does not count
    assert count_crossovers_of_target([5], [3], index=3, **PAIR) == Crossover(0, 0)
    assert count_crossovers_of_target([5], [3, 2, 0], index=3, **PAIR) == Crossover(0, 1)
    with pytest.raises(InputError):
        count_crossovers_of_target([], [], index=-1, **PAIR)


def test_crossovers_literally():
    generator = np.random.default_rng(3)
    for _ in range(200):
        index = int(generator.integers(0, 7))
        source = np.flatnonzero(generator.random(10) < 0.5)
        target = [
            *np.flatnonzero(generator.random(index) < 0.5),
            index,
        ]  # the token before stands at `index`
        found = count_crossovers_of_target(
            source.tolist(), [int(j) for j in target], index=index, **PAIR
        )
        if index < 3:
            assert found == Crossover(sum(1 for i in source if 4 <= i < 9), None)
        else:
            wrong = [j for j in target[:-1] if 1 <= j <= 3]
            assert found == Crossover(sum(1 for i in source if i < 4), len(wrong))


def test_crossover_rates():
    found = crossover_rates_of_rationales(
        [Crossover(2, None), Crossover(0, 3), Crossover(1, 0), Crossover(0, 0)]
    )
    assert found == {
        "mean_source": Share(3, 4),
        "mean_target": Share(3, 3),
        "rate_source": Share(2, 4),
        "rate_target": Share(1, 3),
    }
    assert crossover_rates_of_rationales([])["rate_source"] == Share(0, 0)
