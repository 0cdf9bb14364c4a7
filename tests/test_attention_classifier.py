"""Classifiers whose attention can be read: normalizers, the model, its regularizers, its training."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence
from typer.testing import CliRunner

import raison
from raison.attention_models import regularizers
from raison.attention_models.adapter import adapted
from raison.attention_models.config import Design
from raison.attention_models.module import AttentionClassifier, AttentionConfig
from raison.attention_models.normalizers import normalizer_of
from raison.attention_models.regularizers import corrupted, mlm_loss, tying_loss
from raison.attention_models.train import fresh, measured, train_classifier
from raison.attention_models.vocabulary import SPECIAL, glove_vectors, random_vectors, words_tokenizer
from raison.cli.app import app, assemble
from raison.core.errors import InputError, ModelError
from raison.core.records import Example
from raison.metrics.attention import normalised_entropy
from raison.models.protocol import Question
from raison.models.recurrent import over_present
from raison.testing import check_model
from raison.training.class_data import lines_of
from raison.training.seeds import generator
from tests.helpers.paths import ROOT
from tests.helpers.small_classifiers import DESIGNS, SMALL, built, reviews

# -- normalizers ---------------------------------------------------------------------------------------------


def projected(scores: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection on the threshold."""
    low, high = scores.min() - 1, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(scores - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(scores - (low + high) / 2, 0)


numbers = st.lists(st.floats(-5, 5), min_size=1, max_size=9)


@settings(max_examples=60, deadline=None)
@given(numbers, st.floats(-4, 0.9))
def test_sparse_weights_are_projections(values, lam):
    scores = torch.tensor(values, dtype=torch.float64)
    real = torch.ones_like(scores, dtype=torch.bool)
    found = normalizer_of("sparsemax")(scores, real).numpy()
    np.testing.assert_allclose(found, projected(np.array(values)), atol=1e-9)
    general = normalizer_of(f"sparsegen(lam={lam})")(scores, real).numpy()
    np.testing.assert_allclose(general, projected(np.array(values) / (1 - lam)), atol=1e-8)
    assert general.sum() == pytest.approx(1)


def test_low_scores_and_narrow_numbers_keep_their_weights():
    scores, real = torch.tensor([[-20.0, -21.0, 5.0]]), torch.tensor([[True, True, False]])
    assert normalizer_of("sparsegen(lam=0.99999999)")(scores, real).tolist() == [[1.0, 0.0, 0.0]]
    for spec in ("softmax", "sparsemax", "sparsegen(lam=0.5)", "entmax"):
        narrow, wide = (normalizer_of(spec)(scores.to(kind), real) for kind in (torch.float16, torch.float32))
        assert narrow.dtype == torch.float16
        torch.testing.assert_close(narrow.float(), wide, atol=1e-3, rtol=0)


def test_a_larger_lambda_attends_to_fewer():
    scores = torch.randn(50, 20, dtype=torch.float64, generator=generator(3))
    real = torch.ones_like(scores, dtype=torch.bool)
    sizes = [
        (normalizer_of(f"sparsegen(lam={lam})")(scores, real) > 0).sum(-1) for lam in (-100, -3, -0.3, 0, 0.6, 0.99)
    ]
    for fewer, more in zip(sizes[1:], sizes[:-1], strict=True):
        assert (fewer <= more).all()
    assert (normalizer_of("sparsegen(lam=0.9999)")(scores, real).max(-1).values > 0.999).all()
    flat = normalizer_of("sparsegen(lam=-10000)")(scores, real)
    assert (flat - 1 / 20).abs().max() < 1e-3
    zero = normalizer_of("sparsegen")(scores, real)
    assert torch.equal(zero, normalizer_of("sparsemax")(scores, real))


@pytest.mark.parametrize(
    "spec", ["softmax", "sparsemax", "sparsegen(lam=-100)", "entmax", "entmax(alpha=1.3)", "entmax(alpha=2)"]
)
def test_what_is_not_there_gets_nothing(spec):
    normalizer = normalizer_of(spec)
    scores = torch.randn(4, 7, dtype=torch.float64, generator=generator(5))
    real = torch.tensor([[1, 1, 0, 1, 0, 1, 1], [1] * 7, [0, 0, 0, 1, 0, 0, 0], [0] * 7]).bool()
    found = normalizer(scores, real)
    assert (found[~real] == 0).all() and found[3].sum() == 0
    torch.testing.assert_close(found[:3].sum(-1), torch.ones(3, dtype=torch.float64))
    alone = normalizer(scores[:1, real[0]], torch.ones(1, 5, dtype=torch.bool))
    torch.testing.assert_close(found[:1, real[0]], alone)
    shifted = normalizer(scores + 3, real)
    torch.testing.assert_close(found, shifted)
    torch.autograd.gradcheck(lambda a: normalizer(a, real[:2]), scores[:2].clone().requires_grad_(), atol=1e-4)
    assert str(normalizer_of(str(normalizer.spec())).spec()) == str(normalizer.spec())


def test_parameters_that_can_not_be():
    with pytest.raises(InputError, match="λ of sparsegen is a number below 1"):
        normalizer_of("sparsegen(lam=1)")
    with pytest.raises(InputError, match="alpha of entmax"):
        normalizer_of("entmax(alpha=0.5)")
    with pytest.raises(raison.core.errors.UnknownName, match="Did you mean 'sparsemax'"):
        normalizer_of("sparsmax")
    with pytest.raises(InputError, match="even width"):
        Design(width=7)
    with pytest.raises(InputError, match="3 heads can't share a width of 8"):
        Design(width=8, encoder="transformer", heads=3)


# -- the model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", DESIGNS)
def test_the_answer_is_the_mean_of_what_each_word_says(design):
    model = built(**design)
    ids = torch.tensor(model.tokenizer(["a lovely film and a dull ending"])["input_ids"])
    told = model(ids)
    alone = model.decoder(told.read)  # [b t c]
    torch.testing.assert_close((told.weights[..., None] * alone).sum(1), told.logits, atol=1e-10, rtol=0)
    assert told.weights[0, 0] == told.weights[0, -1] == 0 and told.weights.sum() == pytest.approx(1)
    moved = torch.zeros_like(told.weights)
    moved[0, 2] = 1
    torch.testing.assert_close(model(ids, weights=moved).logits, alone[:, 2])


@pytest.mark.parametrize("design", DESIGNS)
def test_padding_changes_nothing(design):
    model = built(**design)
    short = torch.tensor(model.tokenizer(["a lovely film"])["input_ids"])
    alone = model(short)
    for side in ("left", "right"):
        pad = torch.zeros(1, 3, dtype=torch.long)
        wide = torch.cat([pad, short] if side == "left" else [short, pad], 1)
        there = wide != 0
        positions = (there.cumsum(1) - 1).clamp(min=0)
        told = model(wide, attention_mask=there, position_ids=positions)
        torch.testing.assert_close(told.logits, alone.logits)
        torch.testing.assert_close(told.weights[there], alone.weights[0])
        assert (told.weights[~there] == 0).all()


@pytest.mark.parametrize("design", DESIGNS)
def test_it_is_a_model_like_any_other(design):
    model = adapted(built(**design), built(**design).tokenizer, "tiny")
    check_model(model)
    assert {"own", "gradients", "hidden", "score"} <= model.offers and model.removals[0] == "delete"
    found = raison.explain(model, "a lovely film and a dull ending", method="own", units="token")
    (encoding,) = model.encode([Example("a lovely film and a dull ending")])
    np.testing.assert_allclose(found.scores, model.own([encoding])[0][1:-1], atol=1e-12)
    raison.rationalize(model, "a lovely film and a dull ending")
    for name in ("integrated_gradients", "leave_one_out", "lime", "gradient_norm"):
        raison.explain(model, "a lovely film", method=name)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_fast_lstm_is_torchs_own_over_packed_rows(layers):
    torch.manual_seed(0)
    network = torch.nn.LSTM(6, 4, layers, batch_first=True, bidirectional=True).double()
    there = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()
    embedded = torch.randn(5, 5, 6, dtype=torch.float64, requires_grad=True)
    found = over_present(network, embedded, there)
    slope = torch.autograd.grad(found.square().sum(), [embedded, *network.parameters()])
    wanted = torch.zeros(5, 5, 8, dtype=torch.float64)
    for row, kept in enumerate(there):
        if kept.any():
            packed = pack_sequence([embedded[row, kept]])
            wanted[row, kept] = network(packed)[0].data
    assert torch.allclose(found, wanted, atol=1e-12)
    truth = torch.autograd.grad(wanted.square().sum(), [embedded, *network.parameters()])
    assert all(torch.allclose(one, other, atol=1e-10) for one, other in zip(slope, truth, strict=True))
    single = over_present(network.float(), embedded.detach().float(), there)
    assert torch.allclose(single.double(), wanted, atol=1e-6)


def test_what_the_mask_hides_does_not_exist():
    """Deleting a word is reading the text without it, also for a BiLSTM."""
    model = adapted(built(), built().tokenizer, "tiny")
    (whole,), (less,) = (model.encode([Example(text)]) for text in ("a lovely very film", "a lovely film"))
    keep = np.ones((1, len(whole)), bool)
    keep[0, 3] = False
    target = model.resolve_targets(whole)[0][1]
    for removal in ("delete", "mask"):
        (found,) = model.score([Question(whole, target, keep)], removal=removal)
        (wanted,) = model.score([Question(less, target, np.ones((1, len(less)), bool))])
        np.testing.assert_allclose(found.value, wanted.value, atol=1e-12)


def test_pairs_and_several_classes():
    tokenizer = words_tokenizer(["a lovely film", "a dull one"])
    model = fresh(
        Design(width=8), tokenizer, ["no", "yes", "maybe"], random_vectors(len(tokenizer), 8, generator(1)), 0
    )
    model = adapted(model, tokenizer, "tiny")
    found = raison.explain(model, Example("a lovely film", pair="a dull one"), method="own", units="word")
    assert found.encoding.segments == ("first", "second") and found.target.text in ("no", "yes", "maybe")
    assert found.scores.sum() == pytest.approx(1, abs=1e-6)


def test_dot_attention_needs_a_wide_query(tmp_path):
    """P3 App. C: with torch's own initialisation attention stays uniform, with N(0, 1) it does not.

    Of a transformer, whose states have a root mean square of 1; those of a BiLSTM are small, and its scores, too.
    """
    entropies = []
    for spread in (None, 1.0):
        design = {"width": 50, "attention": "dot", "spread": spread, "encoder": "transformer"}
        train_classifier(
            reviews(300), out=tmp_path / str(spread), design=design, lesson={**SMALL, "epochs": 3, "lr": 1e-3}
        )
        model = raison.load(tmp_path / str(spread))
        rows = [own[1:-1] for own in model.own(model.encode(reviews(60, seed=4)))]
        entropies.append(np.mean([normalised_entropy(row) for row in rows]))
    assert entropies[0] > 0.99 and entropies[1] < 0.9


# -- regularizers --------------------------------------------------------------------------------------------


def test_tying_is_the_mean_squared_distance_of_real_tokens():
    model = built()
    batch = model.tokenizer(["a lovely film", "it is very very dull and loud"], padding=True, return_tensors="pt")
    told = model(batch["input_ids"], attention_mask=batch["attention_mask"])
    apart = [
        float((told.states[b, t] - told.embeddings[b, t]).square().sum()) for b, t in torch.nonzero(told.real).tolist()
    ]
    assert len(apart) == 10 and float(tying_loss(told)) == pytest.approx(np.mean(apart))
    told.states = told.embeddings
    assert float(tying_loss(told)) == 0


def test_mlm_asks_about_real_words_and_tells_them_by_the_table():
    ids = torch.tensor([[2, 7, 8, 9, 10, 3, 0, 0]] * 500)
    real = ids > 4
    changed, chosen = corrupted(ids, real, 30, 0.15, generator(1))
    assert not (chosen & ~real).any() and 0.13 < chosen.sum() / real.sum() < 0.17
    assert torch.equal(changed[~chosen], ids[~chosen])
    mask = (changed[chosen] == SPECIAL.index("[MASK]")).float().mean()
    same = (changed[chosen] == ids[chosen]).float().mean()
    assert 0.74 < mask < 0.86 and 0.05 < same < 0.17 and changed.min() == 0 and (changed[chosen] >= 4).all()
    model = built()
    batch = torch.tensor(model.tokenizer(["it is very very dull and loud"])["input_ids"])
    there = torch.ones_like(batch, dtype=torch.bool)
    random = generator(4)
    found = mlm_loss(model, batch, there, 0.5, random)
    moved, asked = corrupted(batch, (batch > 4), model.config.vocab_size, 0.5, generator(4))
    states = model(moved).states[asked]
    told = torch.log_softmax(states @ model.words.weight.T, -1)
    wanted = -told[torch.arange(len(states)), batch[asked]].mean()
    torch.testing.assert_close(found, wanted)
    assert float(mlm_loss(model, batch, there, 1e-9, generator(4))) == 0


@pytest.mark.parametrize("cached", [1, 500, 1 << 20])
def test_a_loss_told_a_few_rows_at_a_time_is_the_cross_entropy(cached, monkeypatch):
    monkeypatch.setattr(regularizers, "CACHED", cached)
    random = generator(1)
    table, states = torch.randn(90, 7, generator=random).double(), 9 * torch.randn(23, 7, generator=random).double()
    wanted = torch.randint(90, (23,), generator=random)
    found, literal = (states.clone().requires_grad_() for _ in range(2))
    loss = regularizers.Named.apply(found, table, wanted)
    expected = torch.nn.functional.cross_entropy(literal @ table.T, wanted)
    (3 * loss).backward()
    (3 * expected).backward()
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found.grad, literal.grad, rtol=1e-10, atol=1e-12)


# -- training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", [{}, {"tying": 0.1}, {"mlm": 0.3, "share": 0.3}])
def test_it_learns_the_words_that_decide(tmp_path, lesson):
    report = train_classifier(reviews(400), out=tmp_path, design={"width": 16}, lesson={**SMALL, **lesson})
    assert report["dev"]["accuracy"] > 0.95
    model = raison.load(tmp_path)
    assert model.labels == ("negative", "positive") and "own" in model.offers
    told = json.loads((tmp_path / "training.json").read_text())
    assert told["dev"]["accuracy"] == report["dev"]["accuracy"] and told["freeze"] == ("mlm" in lesson)
    assert not (tmp_path / "checkpoint.pt").exists() and not (tmp_path / "best.pt").exists()
    fresh_texts = reviews(100, seed=9)
    said = [p.target.text for p in model.predict(model.encode(fresh_texts))]
    assert np.mean([s == e.label for s, e in zip(said, fresh_texts, strict=True)]) > 0.95


def test_the_same_seed_gives_the_same_model_and_several_are_told(tmp_path):
    first = train_classifier(
        reviews(80), out=tmp_path / "a", design={"width": 8}, lesson={**SMALL, "epochs": 2}, seed=1
    )
    both = train_classifier(reviews(80), out=tmp_path / "b", design={"width": 8}, lesson={**SMALL, "epochs": 2}, runs=2)
    second = json.loads((tmp_path / "b" / "run-1" / "training.json").read_text())
    assert second["history"] == first["history"] and both["seeds"] == [0, 1]
    values = [json.loads((tmp_path / "b" / f"run-{k}" / "training.json").read_text())["dev"]["f1"] for k in (0, 1)]
    assert both["dev"]["f1"]["mean"] == pytest.approx(np.mean(values))
    assert both["dev"]["f1"]["deviation"] == pytest.approx(np.std(values, ddof=1))
    with pytest.raises(InputError, match="holds a run of another experiment"):
        train_classifier(reviews(80), out=tmp_path / "b", design={"width": 8}, lesson={**SMALL, "epochs": 3}, runs=2)
    for other in ({"design": {"width": 8, "attention": "dot"}}, {"lesson": {**SMALL, "epochs": 2, "patience": 9}}):
        same = {"design": {"width": 8}, "lesson": {**SMALL, "epochs": 2}, **other}
        with pytest.raises(InputError, match="holds a run of another experiment"):
            train_classifier(reviews(80), out=tmp_path / "b", runs=2, **same)
    with pytest.raises(InputError, match="holds a run of another experiment"):
        train_classifier(
            reviews(80), out=tmp_path / "b", design={"width": 8}, lesson={**SMALL, "epochs": 2}, runs=2, limit=70
        )
    one, two = (raison.load(tmp_path / place).hf.state_dict() for place in ("a", "b/run-1"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_the_best_epoch_is_kept_and_training_ends_when_it_gets_no_better(tmp_path):
    lesson = {**SMALL, "epochs": 40, "patience": 3}
    report = train_classifier(reviews(200), out=tmp_path, design={"width": 16}, lesson=lesson)
    values = [(one["f1"], -round(one["loss"], 2)) for one in report["history"]]  # among equal scores the least loss
    assert report["epochs run"] < 40 and len(values) - 1 - values.index(max(values)) == 3
    assert (report["dev"]["f1"], -round(report["dev"]["loss"], 2)) == max(values)
    assert len({score for score, _ in values}) < len(values)  # there are equals


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    code = """
import sys; sys.path.insert(0, {root!r})
from tests.helpers.small_classifiers import reviews, SMALL
from raison.attention_models import train
from raison.training import fit
import functools
train.Course = functools.partial(fit.Course, save_every=0.0)
lesson = {{**SMALL, "epochs": 30, "patience": 30}}
train.train_classifier(reviews(300), out={out!r}, design={{"width": 16}}, lesson=lesson)
"""

    script = code.format(root=str(ROOT), out=str(tmp_path / "killed"))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if (tmp_path / "killed" / "checkpoint.pt").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / "training.json").exists()
    lesson = {**SMALL, "epochs": 30, "patience": 30}
    report = train_classifier(reviews(300), out=tmp_path / "killed", design={"width": 16}, lesson=lesson)
    whole = train_classifier(reviews(300), out=tmp_path / "whole", design={"width": 16}, lesson=lesson)
    assert report["history"] == whole["history"] and report["dev"] == whole["dev"]


def test_the_best_epoch_of_another_run_is_not_taken_for_this_one(tmp_path):
    from raison.training.early_stopping import BEST

    lesson = {**SMALL, "epochs": 1, "lr": 1e-6}
    clean = train_classifier(reviews(120), out=tmp_path / "a", design={"width": 8}, lesson=lesson)
    (tmp_path / "b").mkdir()
    torch.save({"f1": 2.0, "weights": {}, "settings": {}}, tmp_path / "b" / BEST)  # of a run that was killed early
    assert train_classifier(reviews(120), out=tmp_path / "b", design={"width": 8}, lesson=lesson)["dev"] == clean["dev"]
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "checkpoint.pt").write_bytes(b"")
    torch.save({"f1": 2.0, "weights": {}, "settings": {}}, tmp_path / "c" / BEST)  # as another version wrote it
    with pytest.raises(InputError, match=r"best.pt is damaged or of another version: delete it and checkpoint.pt"):
        train_classifier(reviews(120), out=tmp_path / "c", design={"width": 8}, lesson=lesson)


def test_vectors_of_a_file(tmp_path):
    tokenizer = words_tokenizer(["a lovely film"])
    file = tmp_path / "glove.txt"
    file.write_text("lovely 1 2 3\nfilm 4 5 6\nother 7 8 9\n")
    made, known = glove_vectors(file, tokenizer, generator(0))
    assert known == 2 and made[tokenizer.convert_tokens_to_ids("film")].tolist() == [4, 5, 6]
    np.save(tmp_path / "glove.npy", np.array([[1, 2], [3, 4.0]]))
    (tmp_path / "words.txt").write_text("film\nlovely\n")
    made, known = glove_vectors(tmp_path, tokenizer, generator(0))
    assert known == 2 and made[tokenizer.convert_tokens_to_ids("lovely")].tolist() == [3, 4]
    file.write_text("the 1 2 3\nlovely 1 2 3\n\nfilm 4 5 nan\n")
    with pytest.raises(InputError, match=r"Line 4 of glove.txt holds NaN"):
        glove_vectors(file, tokenizer, generator(0))
    file.write_text("film 1 2 3\n. . . 1 2 3\n\nlovely 4 5 6\n")  # a word with spaces, and an empty line
    assert glove_vectors(file, tokenizer, generator(0))[1] == 2
    data = reviews(60)
    with pytest.raises(InputError, match="vectors of 3 numbers, and the model wants 50: leave the width"):
        file.write_text("film 4 5 6\n")
        train_classifier(data, out=tmp_path / "x", design={"width": 50}, lesson={"embeddings": str(file)})
    report = train_classifier(
        data,
        out=tmp_path / "y",
        design={"encoder": "transformer"},
        lesson={**SMALL, "epochs": 1, "embeddings": str(file)},
    )
    assert report["freeze"] is True and report["design"]["width"] == 3 and report["embeddings"] == "glove.txt"


def test_bad_input_is_told_in_one_sentence(tmp_path):
    data, out = reviews(60), tmp_path / "out"
    with pytest.raises(InputError, match="All training texts have the label 'x'"):
        train_classifier([Example(e.text, label="x") for e in data], out=out)
    with pytest.raises(InputError, match="stand in its development or test part as well"):
        train_classifier([data[0]] * 40, out=out)
    with pytest.raises(InputError, match="1 texts have no label: name their column"):
        train_classifier([*data, Example("none")], out=out)
    with pytest.raises(InputError, match="fewer than a batch of 32"):
        train_classifier(reviews(20), out=out)
    with pytest.raises(InputError, match="has no setting 'widht'. Did you mean 'width'"):
        train_classifier(data, out=out, design={"widht": 3})
    with pytest.raises(InputError, match="λ of sparsegen"):
        train_classifier(data, out=out, design={"normalizer": "sparsegen(lam=1.5)"})
    with pytest.raises(InputError, match="mlm tells words by the frozen embeddings"):
        train_classifier(data, out=out, lesson={"mlm": 1.0, "freeze": False})
    with pytest.raises(InputError, match="is no file of word vectors and no model here"):
        train_classifier(data, out=out, lesson={"embeddings": "no-such-file.txt"})
    with pytest.raises(InputError, match="has no part to train on"):
        train_classifier("lambada_test", out=out)
    with pytest.raises(InputError, match="which no training text has"):
        from raison.training.class_data import labels_of

        labels_of({"train": data, "dev": [Example("x", label="neutral")]})


def test_the_command_and_a_damaged_folder(tmp_path):
    file = tmp_path / "data.csv"
    file.write_text("text,label\n" + "\n".join(f"{e.text},{e.label}" for e in reviews(120)))
    out = tmp_path / "model"
    args = [
        "train",
        "classifier",
        "--data",
        str(file),
        "--out",
        str(out),
        "--width",
        "8",
        "--epochs",
        "2",
        "--batch",
        "16",
    ]
    assemble()
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0 and "accuracy" in result.stdout
    assert json.loads((out / "training.json").read_text())["command"] == (
        "raison train classifier --data data.csv --out FOLDER --width 8 --batch 16 --epochs 2"
    )
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "has a finished model" in again.stderr
    (out / "training.json").rename(tmp_path / "report.json")
    before = (out / "model.safetensors").read_bytes()
    again = CliRunner().invoke(app, args)
    assert again.exit_code == 2 and "has somebody's model (model.safetensors)" in again.stderr
    assert (out / "model.safetensors").read_bytes() == before
    tuned = CliRunner().invoke(app, [*args[:5], str(tmp_path / "tuned"), *args[6:], "--tune"])
    assert tuned.exit_code == 0
    told = json.loads((tmp_path / "tuned" / "training.json").read_text())["command"]
    assert told.endswith("--tune --batch 16 --epochs 2") and "False" not in told
    wrong = CliRunner().invoke(app, [*args, "--seed", "99999999999999"])
    assert wrong.exit_code == 2 and "seed is a whole number from 0 to 2147483647" in wrong.stderr
    wrong = CliRunner().invoke(app, [*args[:5], str(tmp_path / "x"), *args[6:], "--normalizer", "foo"])
    assert wrong.exit_code == 2 and "There are entmax, softmax, sparsegen, sparsemax." in wrong.stderr
    from safetensors.torch import load_file, save_file

    weights = load_file(out / "model.safetensors")
    save_file({k: v for k, v in weights.items() if k != "scorer.query.weight"}, out / "model.safetensors")
    with pytest.raises(ModelError, match=r"lack 1 of its weights \(scorer.query.weight\)"):
        raison.load(out)
    config = json.loads((out / "config.json").read_text())
    config["design"]["normalizer"] = "sparsegen(lam=2)"
    (out / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match="can't be read"):
        raison.load(out)


def test_f1_is_that_of_scikit_learn():
    from sklearn.metrics import f1_score

    from raison.training.f1 import f1_of

    rng = np.random.default_rng(0)
    for classes, there in ((2, 2), (4, 4), (4, 2)):  # at last two classes that nobody says or means
        said, gold = rng.integers(there, size=(2, 200))
        average = "binary" if classes == 2 else "macro"
        assert f1_of(said, gold, classes) == pytest.approx(f1_score(gold, said, average=average))
    assert f1_of(np.zeros(5, int), np.zeros(5, int), 2) == 0
    absent = f1_of(np.array([0, 0, 2, 1]), np.array([0, 0, 0, 1]), 3)
    assert absent == pytest.approx(
        f1_score([0, 0, 0, 1], [0, 0, 2, 1], average="macro", labels=[0, 1, 2], zero_division=0)
    )


def test_numbers_and_accents_are_explained_as_a_whole():
    """The vocabulary writes them as one; what is shown and compared with people's marks is what stands in the text."""
    model = model_named(["a good film of 1999 cafe\u0301"])
    for text, words in (
        ("a good film of 2012 with 12345", ["a", "good", "film", "of", "2012", "with", "12345"]),
        ("cafe\u0301 2012", ["cafe\u0301", "2012"]),
        ("3 films", ["3", "films"]),
    ):
        (encoding,) = model.encode([Example(text)])
        spans = [(int(a), int(b)) for a, b in zip(encoding.start, encoding.end, strict=True) if a >= 0]
        assert [text[a:b] for a, b in spans] == words


def model_named(texts):
    tokenizer = words_tokenizer(texts)
    vectors = random_vectors(len(tokenizer), 12, generator(0))
    hf = fresh(Design(width=12), tokenizer, ["no", "yes"], vectors, 0).eval().requires_grad_(False)
    return adapted(hf, tokenizer, "tiny")


def test_what_is_too_long_is_cut_as_explaining_cuts_it():
    hf = built(double=False, longest=32)
    model = adapted(hf, hf.tokenizer, "m")
    data = [Example("good film " * 40, "a bad one " * 5, label="negative"), Example("good " * 90, label="positive")]
    lines = lines_of({"dev": data}, model.tokenizer, ["negative", "positive"], 32)
    encodings = model.encode([Example(e.text, e.pair) for e in data], truncate=True)
    assert model.max_tokens == 32 and lines.counts["dev, cut"] == 2
    assert [line.ids for line in lines.parts["dev"]] == [tuple(e.ids.tolist()) for e in encodings]


def test_a_config_of_another_model_is_told_in_one_sentence(tmp_path):
    hf = built(double=False)
    hf.save_pretrained(tmp_path)
    hf.tokenizer.save_pretrained(tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"width": ', '"width": 1'))
    with pytest.raises(ModelError, match=r"other shapes than its config.json says: take both files from one model\)"):
        raison.load(str(tmp_path))


def test_measuring_does_not_depend_on_batches():
    model = built(double=False)
    data = reviews(50)
    rows = lines_of({"dev": data}, model.tokenizer, ["negative", "positive"], 64).parts["dev"]
    assert measured(model, rows, 7) == pytest.approx(measured(model, rows, 50), rel=1e-5)
    config = AttentionConfig(asdict(Design(width=4)), 9)
    assert math.isfinite(float(AttentionClassifier(config)(torch.tensor([[2, 7, 3]])).logits.detach().sum()))
