"""Who agrees with whom, in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raison.show.agreement_measures import MethodAgreement, agreement_of_pairs, least_tau_alike
from raison.show.agreement_sentences import (
    agreement_footnotes,
    join_method_names,
    method_titles,
    statement_of_agreement,
)
from raison.show.terminal.columns import fold_column_title
from tests.helpers.scored_explanations import (
    LOO,
    MOVIE,
    NEAR,
    NOISE,
    SIZES,
    explained_by_methods,
    four_methods,
    scored,
)


def said(*scores, **fields):
    found = explained_by_methods(*scores, **fields)
    return statement_of_agreement(found, agreement_of_pairs([each.scores for each in found]))


def test_who_agrees_and_who_stands_apart():
    assert said(LOO, NEAR, SIZES, NOISE) == (
        "leave_one_out and lime order the words most alike (tau-b 0.81) and agree on the 3 strongest words; random "
        "stands apart."
    )
    assert (
        said(LOO, NEAR)
        == "leave_one_out and lime agree on the 3 strongest words and order the words alike."
    )
    none = "leave_one_out and lime agree on none of the 3 strongest words"
    assert said(LOO, NOISE) == f"{none} and do not order the words alike."
    assert said(SIZES, [5 if u == 1 else noise for u, noise in enumerate(NOISE)]) == (
        "leave_one_out and lime agree on 1 of the 3 strongest words but do not order the words alike."
    )
    assert said(LOO, -np.array(NEAR)) == f"{none} and order the words in reverse."
    assert said(LOO, LOO, NEAR).startswith(
        "All methods order the words alike; leave_one_out and lime order the words most alike (tau-b 1.00) and agree on"
    )
    assert said(NOISE, SIZES, np.roll(NOISE, 5)).startswith(
        "No two methods agree more than chance would; "
    )
    chain = said(*([*range(at, 12), *range(at)] for at in (0, 1, 2, 3)))
    assert chain.startswith(
        "leave_one_out and lime order the words most alike (tau-b 0.67) and share 2 of the 3 "
    )
    assert chain.endswith("strongest; every method is close to at least one other.")


def test_the_pair_that_is_called_most_alike_is_so_in_the_table():
    """Its order is named before its strongest words, which may be few."""
    numbers = {
        (0, 1): MethodAgreement(1, 0.65, 0.8, 0.8, False),
        (0, 2): MethodAgreement(2, 0.1, 0.1, 0.1, False),
        (1, 2): MethodAgreement(2, 0.1, 0.1, 0.1, False),
    }
    assert statement_of_agreement(explained_by_methods(LOO, NEAR, NOISE), numbers) == (
        "leave_one_out and lime order the words most alike (tau-b 0.65) but share only 1 of the 3 strongest; "
        "gradient_norm stands apart."
    )
    random = np.random.default_rng(5)
    for _ in range(100):
        found = explained_by_methods(*random.normal(size=(4, 12)))
        tables = agreement_of_pairs([each.scores for each in found])
        first, _, rest = (
            statement_of_agreement(found, tables)
            .rpartition("; ")[0]
            .rpartition("; ")[2]
            .partition(" order the words ")
        )
        if rest.startswith("most alike"):
            names = method_titles(found)
            pair = max(tables, key=lambda at: tables[at].tau)
            assert first == f"{names[pair[0]]} and {names[pair[1]]}"
            assert f"(tau-b {tables[pair].tau:.2f})" in rest


def test_methods_that_are_close_by_their_strongest_words_alone_are_said_to_be():
    numbers = {
        (0, 1): MethodAgreement(3, 0.1, 0.1, 0.1, False),
        (0, 2): MethodAgreement(0, 0.2, 0.1, 0.1, False),
        (1, 2): MethodAgreement(0, 0.1, 0.1, 0.1, False),
    }
    assert statement_of_agreement(explained_by_methods(LOO, NEAR, NOISE), numbers) == (
        "leave_one_out and lime share the most of the strongest words (3 of 3) but order the words no more alike than "
        "chance would (tau-b 0.10); gradient_norm stands apart."
    )


def test_what_cannot_be_compared():
    assert said([1], [2], text="Superb") == "There is only one word: nothing to compare."
    assert (
        said(np.zeros(12), LOO)
        == "leave_one_out gives every word the same score. There is nothing to compare."
    )
    assert said(np.ones(12), LOO, NEAR).endswith(
        " alike; lime and gradient_norm order the words most alike (tau-b 0.81) and agree on the 3 strongest "
        "words. leave_one_out gives every word the same score."
    )
    assert said([1, 2], [2, 1], text="good film").endswith(
        "; 2 words are too few to tell orders from chance."
    )
    assert "differ in the strongest word" in said([1, 2], [2, 1], text="good film")


def test_what_the_numbers_mean_is_said():
    found = four_methods()
    notes = agreement_footnotes(found, agreement_of_pairs([each.scores for each in found]))
    assert (
        notes[0].startswith(f"Alike: tau-b of {least_tau_alike(12):.3f} or more")
        and "12 words" in notes[0]
    )
    assert notes[1].startswith("Apart: alike to none, ")
    assert notes[2].startswith(
        "gradient_norm and random have no negative scores and are compared with the others by"
    )
    same = explained_by_methods(LOO, NEAR)
    assert len(agreement_footnotes(same, agreement_of_pairs([each.scores for each in same]))) == 1


def test_methods_get_names_that_differ():
    one, two, three, four = (
        scored(MOVIE, scores=LOO, method=m) for m in ("a(x=1)", "b", "a(x=2)", "a(x=1)")
    )
    assert method_titles([one, two]) == ["a", "b"] and method_titles([one, two, three]) == [
        "a(x=1)",
        "b",
        "a(x=2)",
    ]
    assert method_titles([one, replace(four, removal="delete")]) == [
        "a(x=1), mask",
        "a(x=1), delete",
    ]
    assert method_titles([one, four]) == ["a(x=1), mask #1", "a(x=1), mask #2"]
    assert (
        join_method_names("abcdefg") == "a, b, c and 4 more"
        and join_method_names(["a"]) == "a"
        and join_method_names("ab") == "a and b"
    )
    assert (
        fold_column_title("integrated_gradients(steps=64)") == "integrated_\ngradients(\nsteps=64)"
    )
