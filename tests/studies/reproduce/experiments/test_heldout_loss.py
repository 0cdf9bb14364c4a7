"""Losses on held-out texts are those of the plain model, BLEU is sacrebleu's."""

from __future__ import annotations

import pytest
import torch

from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.models.protocol import TargetSpec
from raison.studies.reproduce.experiment import Trial, experiments
from raison.studies.reproduce.experiments import heldout_loss
from raison.studies.reproduce.suite import SuiteRun
from raison.testing import tiny_model


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_heldout_losses_are_those_of_the_plain_model(family, data_dir):
    task = {"gpt2": "causal", "bart": "seq2seq"}[family]
    model = tiny_model(family, task, double=False)
    data = {"gpt2": "wikitext2", "bart": "multi30k_deen"}[family]
    run = SuiteRun("a run", "tiny", data, split="test", settings={"length": 24})
    got = experiments["heldout"](Trial(model, {"log f": ""}, run, 2, 0, data_dir))
    text = got.texts[1].text
    if task == "causal":
        ids = torch.tensor(model.encode([Example(text)])[0].ids[None].copy())
        given, wanted = {"input_ids": ids}, ids[0, 1:]
    else:
        source = open_dataset(data, split="test", limit=2, data=data_dir).examples[1].text
        encoding = model.resolve_targets(
            model.encode([Example(source)])[0], TargetSpec(target=text)
        )[0][0]
        sides = [
            torch.tensor(encoding.ids[side][None].copy())
            for side in (encoding.segment == 0, encoding.segment > 0)
        ]
        given, wanted = {"input_ids": sides[0], "decoder_input_ids": sides[1]}, sides[1][0, 1:]
    with torch.no_grad():
        logs = model.hf(**given).logits[0].log_softmax(-1)
    literal = -logs[torch.arange(len(wanted)), wanted]
    cell = got.cell("log f", "loss")
    assert cell.parts[1] == pytest.approx(float(literal.sum()), abs=1e-3)
    assert cell.wholes[1] == len(literal)
    assert any("BLEU" in note for note in got.notes) == (task == "seq2seq")


def test_bleu_is_that_of_sacrebleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    said, asked = (
        ["a cat sat on the mat today", "dogs bark at night"],
        ["a cat sat on the mat", "dogs bark at night"],
    )
    found = heldout_loss.corpus_bleu(said, asked)
    assert found.score == pytest.approx(sacrebleu.corpus_bleu(said, [asked]).score)
    assert found.low <= found.score <= found.high
