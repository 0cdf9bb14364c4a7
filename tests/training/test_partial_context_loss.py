"""Perplexity given random parts of a text."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from raison.core.records import Example, Target
from raison.models.load import load
from raison.models.protocol import Question
from raison.models.tasks.continuation import extended_encoding
from raison.testing import tiny_hf
from raison.training.partial_context_loss import draw_token_subsets, subset_perplexities
from raison.training.seeds import seeded_generator
from raison.training.word_dropout import DropoutSide
from raison.training.word_dropout_attention import word_dropout_attention
from tests.helpers.training import setup_of


@pytest.mark.parametrize("family", ["gpt2", "llama", "bart"])
def test_perplexities_are_those_of_raison_itself(family):
    """Full and subset perplexity, measured by masks, against `score` with the other tokens deleted."""

    model = load(*tiny_hf(family, "causal" if family != "bart" else "seq2seq"))
    task, rows = setup_of(model)
    with word_dropout_attention(model.hf):
        found = subset_perplexities(task, rows[:3], subset=5, batch=2, draws=1)
        expected, count, full = 0.0, 0, []
        for start in (0, 2):
            group = sorted(rows[start : min(3, start + 2)], key=len)
            inputs, _ = task.inputs(group)
            subsets = draw_token_subsets(task.sides(inputs), 4, seeded_generator(0, start, 0))
            keeps, seen = subsets.keeps, subsets.rows_behind
            for b, row in enumerate(group):
                if family == "bart":
                    blank = model.encode([Example(model.codec.text(row.source[:-1]))])[0]
                    if blank.ids[:-1].tolist() != list(row.source):
                        pytest.fail("the source is cut in another way")
                    encoding, at = (
                        extended_encoding(blank, row.target, model.codec),
                        len(row.source),
                    )
                else:
                    blank = model.encode([Example("The")])[0]
                    encoding, at = (
                        extended_encoding(blank, row.target[len(blank) :], model.codec),
                        0,
                    )
                    data = encoding.to_dict() | {"ids": list(row.target)}
                    encoding = type(encoding).from_dict(data)
                for i in range(len(row.target) if family == "bart" else len(row.target) - 1):
                    place = at + i + 1
                    target = Target("token", (int(encoding.ids[place]),), (place,), "", "log_prob")
                    keep = np.zeros((2, len(encoding)), bool)
                    keep[1] = True
                    keep[0, at : at + keeps.target.shape[2]] = keeps.target[
                        b, 0, : len(encoding) - at
                    ]
                    keep[0, at + i :] = False
                    if at:
                        keep[0, :at] = keeps.source[b, 0, :at]
                    keep[0, place - 1] = True
                    one, whole = model.score([Question(encoding, target, keep)], removal="delete")[
                        0
                    ].value[:, 0]
                    full.append(-whole)
                    if seen[b, i]:
                        assert keep[0].sum() == 5 + task.lead
                        expected, count = expected - one, count + 1
    assert found["perplexity"] == pytest.approx(math.exp(sum(full) / len(full)), rel=1e-5)
    assert found["predictions from 5 tokens"] == count > 3
    assert found["perplexity of 5 tokens"] == pytest.approx(math.exp(expected / count), rel=1e-5)


def test_subsets_are_uniform_and_only_rows_behind_them_count():
    real = torch.ones(20_000, 6, dtype=torch.bool)
    subsets = draw_token_subsets([DropoutSide(real, 1)], 2, seeded_generator(0))
    keeps, seen = subsets.keeps, subsets.rows_behind
    kept = keeps.target[:, 0]
    assert (kept.sum(1) == 2).all() and not kept[:, 5].any() and seen[:, 5].all()
    assert (
        seen == (torch.arange(6) > torch.where(kept, torch.arange(6), -1).amax(1, keepdim=True))
    ).all()
    assert (kept[:, :5].double().mean(0) - 0.4).abs().max() < 0.02
    given = kept[
        seen[:, 4]
    ]  # rows that row 4 may be measured in: each pair of what lies before is alike
    assert (given[:, :4].double().mean(0) - 0.5).abs().max() < 0.03
