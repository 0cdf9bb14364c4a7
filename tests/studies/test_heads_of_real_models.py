"""Heads of real models: two sources of trees agree, and what is shipped is what is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.core.artifact import Artifact
from raison.core.errors import InputError, MissingExtra
from raison.datasets import conllu, spacy_trees
from raison.methods.head_masks import head_masks, head_strengths
from raison.studies.head_statistics import RELATIONS, head_statistics
from raison.testing import tiny_model
from tests.helpers.treebanks import EWT


@pytest.fixture(scope="module")
def parser():
    pytest.importorskip("spacy")
    try:
        spacy_trees.load_spacy_model(None)
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def minilm():
    """The encoder under the sentiment model, with a head that nobody reads: attention does not depend on it."""
    from transformers import BertForSequenceClassification

    from raison.core.errors import DownloadError
    from raison.models import catalog

    try:
        encoder, tokenizer = catalog.catalog_entries()["minilm"].open()
    except (DownloadError, MissingExtra) as error:
        pytest.skip(f"MiniLM can't be had here: {error}")
    torch.manual_seed(0)
    whole = BertForSequenceClassification(encoder.config)
    whole.bert = encoder
    return raison.load(whole.eval(), tokenizer)


@pytest.fixture(scope="module")
def gold(minilm, data_dir) -> Artifact:
    return head_statistics(
        minilm, conllu.read_conllu(data_dir / EWT, 400), corpus="UD English EWT dev"
    )


def top_twelve(table: np.ndarray) -> set[int]:
    return set(np.argsort(-table, axis=None, kind="stable")[:12].tolist())


def agree(one: Artifact, other: Artifact) -> dict[str, float]:
    """Mean |Δα| of each relation, and the overlap of the twelve best heads by α − max λ."""
    change = {
        k: float(np.abs(np.array(one.data["alpha"][k]) - np.array(other.data["alpha"][k])).mean())
        for k in RELATIONS
    }
    best = [top_twelve(head_strengths(each)[0]) for each in (one, other)]
    return {**change, "jaccard": len(best[0] & best[1]) / len(best[0] | best[1])}


@pytest.mark.registry
def test_few_heads_of_minilm_pass(gold):
    synt, pos = head_masks(gold)
    assert gold.data["shape"] == {"self": [6, 12]} and gold.data["direction"].startswith(
        "dependent"
    )
    assert np.argwhere(synt).tolist() == [[2, 0]] and np.argwhere(pos).tolist() == [[0, 2], [1, 8]]
    assert [gold.data["positional"]["offset"][b][h] for b, h in ((0, 2), (1, 8))] == [-1, 1]
    assert not (synt | pos)[3:].any()
    more = head_masks(gold, top=1)
    assert (more[0].sum(1) >= 1).all() and (more[1].sum(1) >= 1).all()


@pytest.mark.registry
def test_treebank_and_parser_agree(gold, minilm, data_dir, parser):
    texts = [sentence.text for sentence in conllu.read_conllu(data_dir / EWT, 400)]
    found = agree(gold, head_statistics(minilm, list(spacy_trees.parse_texts_with_spacy(texts))))
    assert max(found[k] for k in RELATIONS) < 0.05
    assert found["jaccard"] >= 0.8


@pytest.mark.full
@pytest.mark.registry
def test_treebank_and_parser_agree_on_the_whole_split(minilm, data_dir, parser, record_property):
    trees = conllu.read_conllu(data_dir / EWT)
    parsed = list(spacy_trees.parse_texts_with_spacy([sentence.text for sentence in trees]))
    found = agree(head_statistics(minilm, trees), head_statistics(minilm, parsed))
    for name, value in found.items():
        record_property(name, round(value, 4))
    assert max(found[k] for k in RELATIONS) < 0.05 and found["jaccard"] >= 0.8


SHIPPED = Path(raison.__file__).parent / "models" / "catalog" / "shipped"


@pytest.mark.parametrize(("name", "maps", "heads"), [("sentiment", 6, 12), ("smollm2", 30, 9)])
def test_shipped_statistics(name, maps, heads):
    found = Artifact.open(SHIPPED / name / "heads.json", "heads")
    assert found.model == name and found.data["shape"] == {"self": [maps, heads]}
    assert found.about["sentences"] == 2001 and min(found.data["counts"].values()) > 1000
    synt, pos = head_masks(found)
    assert found.data["masks"] == {
        "synt": synt.astype(int).tolist(),
        "pos": pos.astype(int).tolist(),
    }
    assert synt.any() and pos.any()
    chosen = head_masks(found, top=1)
    assert (chosen[0] | chosen[1]).any(1).all()
    text = (SHIPPED / name / "heads.json").read_text(encoding="utf-8")
    assert "/work" not in text and "/home" not in text and len(text) < 60_000


@pytest.mark.registry
def test_the_sentiment_model_brings_its_heads(sentiment, data_dir):
    assert "heads" in sentiment.offers
    shipped = Artifact.open(sentiment.head_statistics, "heads")
    found = head_statistics(sentiment, conllu.read_conllu(data_dir / EWT, 60))
    for relation in RELATIONS:  # the same model, fewer sentences
        gap = np.abs(
            np.array(found.data["alpha"][relation]) - np.array(shipped.data["alpha"][relation])
        )
        assert gap.mean() < 0.03
    assert (
        np.argwhere(head_masks(found)[1]).tolist() == np.argwhere(head_masks(shipped)[1]).tolist()
    )


@pytest.mark.registry
def test_smollm2_brings_its_heads(smollm2):
    assert "heads" in smollm2.offers
    shipped = Artifact.open(smollm2.head_statistics, "heads")
    config = smollm2.hf.config
    assert shipped.data["shape"] == {"self": [config.num_hidden_layers, config.num_attention_heads]}
    assert shipped.data["direction"].startswith("later")


def test_other_models_bring_none():
    model = tiny_model("bert", "classification")
    assert model.head_statistics is None and "heads" not in model.offers


@pytest.mark.full
@pytest.mark.registry
@pytest.mark.parametrize("name", ["sentiment", "smollm2"])
def test_shipped_statistics_are_made_again(name, request, data_dir, record_property):
    model = request.getfixturevalue(name)
    shipped = Artifact.open(model.head_statistics, "heads")
    found = head_statistics(
        model, conllu.read_conllu(data_dir / EWT), corpus=shipped.about["corpus"]
    )
    same = found.content() == shipped.content()
    record_property("same content", same)
    for one, other in zip(head_strengths(found), head_strengths(shipped), strict=True):
        np.testing.assert_allclose(
            one, other, atol=0.005
        )  # another processor may break a tie of two weights
