"""Templates of long-range agreement say what they should."""

from __future__ import annotations

import re

import pytest

from raison.core.records import Example
from raison.datasets.agreement_templates import TEMPLATES, fill_templates, word_pairs


def test_there_are_templates_for_twelve_relations(data_dir):
    from raison.datasets.open import open_dataset

    known = word_pairs(open_dataset("analogies", data=data_dir).examples)
    relations = [template.relation for template in TEMPLATES]
    assert len(set(relations)) == len(relations) >= 12
    assert set(relations) <= set(known)
    made = fill_templates(open_dataset("analogies", data=data_dir).examples)
    assert {relation: len(examples) for relation, examples in made.items()} == {
        r: len(known[r]) for r in relations
    }
    ids = [example.id for examples in made.values() for example in examples]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda each: each.relation)
def test_a_template_has_one_distractor_and_ends_before_its_answer(template):
    example = template.fill(("qqq", "zzz"))
    given, answer = ("zzz", "qqq") if template.backwards else ("qqq", "zzz")
    text = example.text
    assert example.target == f" {answer}"
    assert answer not in text
    assert text.count(given) == 1
    assert text.count("(") == text.count(")") == text.count(").") == 1
    assert re.fullmatch(r".*[\w,]", text)  # the answer is the next word, after a space
    start, end = example.meta["aside"]
    assert text[start] == "("
    assert text[end - 2 : end] == ")."
    assert text[: start - 1] + text[end:] == example.meta["without"]
    assert text[slice(example.gold[0].start, example.gold[0].end)] == given
    assert example.gold[0].end < start
    assert text[example.gold[0].start - 1] == " "  # a word with a space before it, as the answer


def test_pairs_are_taken_once():
    rows = [("a", "b", "c", "d"), ("a", "b", "e", "f"), ("c", "d", "a", "b")]
    examples = [
        Example("x", id=str(k), meta={"relation": "r", "words": words})
        for k, words in enumerate(rows)
    ]
    assert word_pairs(examples) == {"r": [("a", "b"), ("c", "d"), ("e", "f")]}
