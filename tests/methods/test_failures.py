"""What a model's or a method's code raises is told in one sentence, and a method that can't work is switched off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError, MethodFailed, ModelError
from raison.methods.base import Answer, Method
from raison.methods.gae import GAE
from raison.models.load import load
from raison.models.probe import model_probe as probing
from raison.models.transformers_model import TransformersModel
from raison.testing import tiny_hf, tiny_model

TEXT = "The film is a lovely surprise."


@pytest.fixture
def model():
    """A model of its own: what is switched off stays off for it."""
    return load(*tiny_hf("bert", "classification"))


def fail(*_, **__):
    raise IndexError("list index\nout of range")


@pytest.mark.parametrize("name", ["gae", "integrated_gradients", "lrp", "leave_one_out", "greedy"])
def test_a_failing_method_is_named_with_its_model_and_switched_off(name, model, monkeypatch):
    calls = []
    ask = raison.rationalize if name == "greedy" else raison.explain

    def broken(*_, **__):
        calls.append(1)
        fail()

    monkeypatch.setattr(model, "trace", broken)
    monkeypatch.setattr(model, "score", broken)
    sentence = rf"^{name} can't follow BertForSequenceClassification \(IndexError: list index out of range\)"
    with pytest.raises(MethodFailed, match=sentence) as caught:
        ask(model, TEXT, name)
    assert isinstance(caught.value.__cause__, IndexError) and "\n" not in str(caught.value)
    asked = len(calls)
    with pytest.raises(MethodFailed, match="is switched off for it: choose another method"):
        ask(model, TEXT, name)
    assert len(calls) == asked
    monkeypatch.undo()
    assert raison.explain(model, TEXT, "attention_last").method == "attention_last"


def test_a_method_is_switched_off_for_one_model_only(model, monkeypatch):
    monkeypatch.setattr(model, "trace", fail)
    with pytest.raises(MethodFailed):
        raison.explain(model, TEXT, "gae")
    assert raison.explain(tiny_model("bert", "classification"), TEXT, "gae").method == "gae"


def test_a_method_that_fails_on_one_text_goes_on_with_others(model, monkeypatch):
    plain = GAE.__call__

    def sometimes(self, model, batch):
        if any("surprise" in encoding.texts[0] for encoding in batch.encodings):
            fail()
        return plain(self, model, batch)

    monkeypatch.setattr(GAE, "__call__", sometimes)
    with pytest.raises(
        MethodFailed, match="gae fails on this text with BertForSequenceClassification"
    ):
        raison.explain(model, TEXT, "gae")
    assert raison.explain(model, "A dull story.", "gae").method == "gae"


def test_a_model_that_fails_on_a_text_is_told_as_that(model, monkeypatch):
    monkeypatch.setattr(model, "predict", fail)
    with pytest.raises(
        ModelError, match=r"BertForSequenceClassification fails on this text \(IndexError"
    ):
        raison.explain(model, TEXT)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), MemoryError(), RuntimeError("out of memory"), InputError("No.")]
)
def test_what_is_no_mistake_of_the_code_is_passed_on(error, model, monkeypatch):
    def stop(*_, **__):
        raise error

    monkeypatch.setattr(model, "trace", stop)
    with pytest.raises(type(error)) as caught:
        raison.explain(model, TEXT, "gae")
    assert caught.value is error
    monkeypatch.undo()
    assert raison.explain(model, TEXT, "gae").method == "gae"  # nothing is switched off


@pytest.mark.parametrize("name", ["outcomes_of_plain_model", "outcomes_of_view"])
def test_the_probe_tells_any_exception_of_a_model_in_a_sentence(name, monkeypatch):
    class Strange(Exception):
        pass

    def strange(*_, **__):
        raise Strange("what\nis this")

    monkeypatch.setattr(probing, name, strange)
    with pytest.raises(ModelError, match=r"can't run a plain sentence \(what is this\)"):
        load(*tiny_hf("bert", "classification"))


def test_a_removal_or_an_inside_that_raises_anything_is_not_offered(monkeypatch):
    class Strange(Exception):
        pass

    score = TransformersModel.score

    def odd_score(self, questions, *, removal=None, heads=None, memory=None):
        if removal == "mask_token":
            raise Strange
        return score(self, questions, removal=removal, heads=heads, memory=memory)

    def odd_trace(self, *_, **__):
        raise Strange

    monkeypatch.setattr(TransformersModel, "score", odd_score)
    monkeypatch.setattr(TransformersModel, "trace", odd_trace)
    model = load(*tiny_hf("bert", "classification"))
    assert "mask_token" not in model.removals and "delete" in model.removals
    assert model.offers == {"score"}


def test_the_command_line_shows_what_the_other_methods_found(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from raison.cli.app import app

    hf, tokenizer = tiny_hf("bert", "classification", double=False)
    hf.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    monkeypatch.setattr(GAE, "__call__", fail)
    command = ["explain", TEXT, "-m", str(tmp_path), "-M", "gae", "-M", "leave_one_out"]
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 1 and "leave_one_out" in found.stdout
    assert "gae can't follow" in found.stderr and "Traceback" not in found.stderr
    alone = CliRunner().invoke(app, command[:6])
    assert (alone.exit_code, alone.stdout) == (1, "") and "gae can't follow" in alone.stderr


def test_weights_that_are_not_numbers_give_no_explanation_of_zeros():
    hf, tokenizer = tiny_hf("bert", "classification")
    model = load(hf, tokenizer)
    with torch.no_grad():
        hf.classifier.weight[0, 0] = float("nan")
    for name in ("gradient_norm", "cam", "gradcam", "input_x_gradient"):
        with pytest.raises(InputError, match="not finite"):
            raison.explain(model, "The film is lovely", name, target=0)


@dataclass(frozen=True)
class Letters(Method):
    """Somebody's own method: so many letters has a word."""

    name = "letters"
    axis = "unit"
    wrong: str = ""

    def __call__(self, model, batch):
        if self.wrong == "raises":
            return [batch.units[0].nonsense]
        extra = ["more"] if self.wrong == "longer" else []
        return [
            Answer(np.array([float(len(name)) for name in [*units.names, *extra]]))
            for units in batch.units
        ]


def test_mistakes_of_a_method_from_elsewhere_are_told_as_its_own():
    model = tiny_model("bert", "classification")
    assert raison.explain(model, "a lovely film", Letters()).scores.tolist() == [1, 6, 4]
    sentence = r"'letters' failed in line \d+ of test_failures.py \(AttributeError: .*mend it"
    with pytest.raises(MethodFailed, match=sentence):
        raison.explain(model, "a lovely film", Letters("raises"))
    with pytest.raises(InputError, match="4 scores of letters.* do not fit 3 units"):
        raison.explain(model, "a lovely film", Letters("longer"))
