"""Whether attention explains: every number of an audit beside its formula."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

import raison
from raison.cli.app import app
from raison.core.errors import InputError, Unsupported
from raison.core.records import Example
from raison.metrics.attention import (
    information_of_states,
    kendall_defined,
    kendall_tau,
    permuted_attention,
)
from raison.models.load import load
from raison.show.audit_rows import audit_rows
from raison.show.html.audit import audit_page
from raison.studies.audit.run_audit import audit
from raison.studies.audit.state_importance import state_gradients, state_removals
from raison.testing import tiny_hf
from raison.training.f1 import f1_of_classes
from tests.helpers.small_classifiers import reviews


def test_an_audit_tells_what_its_parts_tell(taught):
    model = load(taught)
    data = reviews(40, seed=5)
    found = audit(model, data, permutations=12, show=3, texts=["a lovely film", "dull"])
    encodings = model.encode(data)
    said = np.array([p.target.ids[0] for p in model.predict(encodings)])
    gold = np.array([model.labels.index(e.label) for e in data])
    assert found.accuracy == (said == gold).mean() and found.f1 == f1_of_classes(said, gold, 2)
    flat = asked(model, encodings, [np.ones(len(e) - 2) / (len(e) - 2) for e in encodings])
    assert found.replaced.uniform.f1 == pytest.approx(f1_of_classes(flat.argmax(-1), gold, 2))
    own = model.own(encodings)
    masks = [np.arange(len(e)) % (len(e) - 1) > 0 for e in encodings]
    drawn = [
        [
            permuted_attention(weights, mask, seed=1 + 100_003 * number + index)[1:-1]
            for index, (weights, mask) in enumerate(zip(own, masks, strict=True))
        ]
        for number in range(12)
    ]
    f1s = [f1_of_classes(asked(model, encodings, weights).argmax(-1), gold, 2) for weights in drawn]
    assert found.replaced.permuted.f1 == pytest.approx(np.mean(f1s))
    assert found.replaced.permuted.versions == 12
    assert found.replaced.permuted.f1_drop == pytest.approx(found.f1 - np.mean(f1s))
    assert found.replaced.uniform.accuracy_drop == pytest.approx(
        found.accuracy - (flat.argmax(-1) == gold).mean()
    )
    gradients = raison.explain(
        model, [e.text for e in data], method="gradient_norm", units="token", output="prob"
    )
    taus = [kendall_tau(a[1:-1], np.abs(g.scores)) for a, g in zip(own, gradients, strict=True)]
    assert found.agreement.gradient_of_words.mean == pytest.approx(np.mean(taus))
    removed = raison.explain(
        model, [e.text for e in data], method="leave_one_out", units="token", output="prob"
    )
    others = {
        "leaving words out": [np.abs(each.scores) for each in removed],
        "gradient of states": state_gradients(model, encodings),
        "leaving states out": state_removals(model, encodings),
    }
    for name, rows in others.items():
        taus = [
            kendall_tau(a[1:-1], b)
            for a, b in zip(own, rows, strict=True)
            if kendall_defined(a[1:-1], np.asarray(b))
        ]
        assert found.agreement.by_title()[name].mean == pytest.approx(np.mean(taus)), name
    assert len({round(each.mean, 6) for each in found.agreement.by_title().values()}) == 4
    for name, rows in (
        ("attention", [a[1:-1] for a in own]),
        ("gradient of words", [g.scores for g in gradients]),
    ):
        each = [stats.entropy(np.abs(row)) / np.log(len(row)) for row in rows if len(row) > 1]
        assert found.entropy.by_title()[name].mean == pytest.approx(np.mean(each), abs=1e-6), name
    likely, words, states = [], [], []
    for encoding, label, right in zip(encodings, said, said == gold, strict=True):
        ids = torch.tensor([encoding.ids.tolist()])
        with torch.no_grad():
            told = model.hf(ids, attention_mask=torch.ones_like(ids))
            alone = model.hf.decoder(told.read).softmax(-1)[0, 1:-1, label]
        words.append(told.embeddings[0, 1:-1].numpy())
        states.append(told.read[0, 1:-1].numpy())
        likely += [float(alone.mean())] if right else []
    assert found.token_probability.mean == pytest.approx(np.mean(likely), abs=1e-6)
    order = [owner for each in model.passes(encodings) for owner in each.owners]
    told = information_of_states(
        *(np.concatenate([rows[k] for k in order]) for rows in (words, states)), seed=0
    )
    known = found.information.frequent_words
    assert known.value == pytest.approx(told.value, abs=1e-6) and (known.pairs, known.k) == (
        told.pairs,
        told.k,
    )
    assert set(found.entropy.by_title()) >= {
        "attention",
        "gradient of words",
        "influence",
        "influence, by facet",
    }
    assert 0 < found.token_probability.mean <= 1 and 20 < found.instance.count < 40
    assert (
        found.instance.count + found.instance.left_out == 40
    )  # some texts are too short for attention to move far
    assert len(found.texts) == 5 and all(
        len(each.probability) == len(each.tokens) for each in found.texts
    )
    assert {found.texts[0].tokens, found.texts[1].tokens} == {("a", "lovely", "film"), ("dull",)}
    assert "explanation" in found.verdict()[-1]
    assert json.loads(found.to_json())["count"] == 40
    page = audit_page(found)
    assert page.count("<svg") >= 8 and found.verdict()[-1] in page and "<script" not in page


def test_special_tokens_that_somebody_typed_are_no_words(taught):
    model = load(taught)
    found = audit(
        model,
        [
            Example("the lovely [SEP] film [PAD] is dull", label="positive"),
            Example("dull", label="negative"),
        ],
    )
    assert found.texts[0].tokens == ("the", "lovely", "film", "is", "dull")
    assert sum(found.texts[0].attention) == pytest.approx(1, abs=1e-3)
    assert found.instance.count == 1 and found.instance.left_out == 1
    assert "NaN" not in found.to_json()


def asked(model, encodings, weights):
    """[n c] the whole model with other attention, a text at a time."""
    rows = []
    for encoding, row in zip(encodings, weights, strict=True):
        given = torch.zeros(1, len(encoding))
        given[0, 1:-1] = torch.from_numpy(row)
        with torch.no_grad():
            rows.append(model.hf(torch.tensor(encoding.ids)[None], weights=given).logits[0].numpy())
    return np.array(rows)


def test_encoders_of_transformers_have_what_is_defined_for_them():
    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    model = load(hf, tokenizer)
    data = [
        Example(text, label=model.labels[k % 2]) for k, text in enumerate(raison.testing.tiny.TEXTS)
    ]
    found = audit(model, data)
    assert (
        not found.replaced.by_title() and found.instance is None and found.token_probability is None
    )
    assert set(found.agreement.by_title()) == {"gradient of words", "leaving words out"}
    assert found.entropy.influence.count
    assert audit_page(found)


def test_texts_of_one_class_and_texts_without_words(taught):
    model = load(taught)
    negative = [e for e in reviews(40) if e.label == "negative"]
    found = audit(model, negative, deep=4, show=0)
    assert np.isnan(found.f1) and found.accuracy == 1 and json.loads(found.to_json())["f1"] is None
    rows = {row.name: (row.value, row.about) for row in audit_rows(found)}
    assert (
        rows["F1"] == ("–", "not defined: no text is positive")
        and "F1 with uniform attention" not in rows
    )
    assert "accuracy with uniform attention" in rows and "nan" not in " ".join(found.verdict())
    empty = [Example("[SEP] [CLS]", label="negative"), Example("[PAD]", label="positive")]
    wordless = audit(model, empty, deep=2, show=0)
    assert wordless.replaced.permuted.accuracy_drop == 0 and wordless.instance.count == 0
    assert "nan" not in " ".join(wordless.verdict()) and audit_page(wordless)


def test_a_text_of_the_users_own_is_looked_at_before_the_long_work(taught, monkeypatch):
    monkeypatch.setattr("raison.studies.audit.attention_tests.scores_with_replaced_attention", None)
    with pytest.raises(InputError, match="empty"):
        audit(load(taught), reviews(9), texts=["fine", ""])


def test_bad_input_is_told_in_one_sentence(taught, tmp_path):
    model = load(taught)
    with pytest.raises(InputError, match="have no label, which an audit needs"):
        audit(model, [Example("a film")])
    with pytest.raises(
        InputError, match="m has no class 'neutral'. Its classes are: negative, positive"
    ):
        audit(model, [Example("a film", label="neutral")])
    with pytest.raises(InputError, match="There are no texts"):
        audit(model, [])
    with pytest.raises(InputError, match="frozen or unfrozen, not 'melted'"):
        audit(model, reviews(5), adversaries=["melted"])
    for wrong, sentence in (
        ({"seed": -1}, "seed"),
        ({"deep": 0}, "deep"),
        ({"lambdas": [float("nan")]}, "λ of an"),
    ):
        with pytest.raises(InputError, match=sentence):
            audit(model, reviews(5), **wrong)
    with pytest.raises(InputError, match="name a data set with a train part"):
        audit(model, reviews(5), adversaries=["frozen"])
    with pytest.raises(
        Unsupported, match=r"does not explain itself, which own reads: train a model that does"
    ):
        raison.explain(load(*tiny_hf("bert", "classification")), "a film", method="own")
    with pytest.raises(Unsupported, match="not a text classifier"):
        audit(load(*tiny_hf("gpt2", "causal")), reviews(5))
    with pytest.raises(Unsupported, match="raison's own attention classifiers"):
        audit(load(*tiny_hf("bert", "classification")), reviews(5), adversaries=["frozen"])
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(20)))
    args = ["audit", "-m", str(taught), "--data", str(file), "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(app, args)
    assert (
        done.exit_code == 0
        and "explanation" in done.stdout
        and (tmp_path / "page.html").stat().st_size > 5000
    )
    wrong = CliRunner().invoke(app, [*args, "--permutations", "0"])
    assert wrong.exit_code == 2 and "--permutations is a whole number from 1 up" in wrong.stderr
