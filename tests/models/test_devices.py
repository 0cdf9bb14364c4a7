"""Everything runs on a device that is not the CPU, and says there what it says on the CPU.

The device is one of our own (helpers/fake_device.py). It changes the whole process, so each part runs in one of its
own: this file is also a command, `python -m tests.models.test_devices PART [few]`. `make test` takes a few cases of
each, the long versions all of them.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import is_dataclass, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import raison.testing
from tests.helpers.paths import ROOT

WORDS = "the film is about a town and its people".split()
MARKS = {"negative": ("dull", "bad"), "positive": ("lovely", "good")}
PARTS = [
    "mixed",
    "explained",
    "spread",
    "measured",
    "rationalizer",
    "classifier",
    "compatibility",
    "audited",
]
FEW = "few" in sys.argv
KINDS = (("bert", "classification"), ("llama", "causal"), ("marian", "seq2seq"))


@pytest.mark.parametrize("part", PARTS)
def test_on_another_device(part):
    in_its_own_process(part, "few")


@pytest.mark.full
@pytest.mark.parametrize("part", PARTS)
def test_everything_on_another_device(part):
    in_its_own_process(part)


@pytest.mark.parametrize("what", ["classifier", "rationalizer", "compatibility"])
def test_a_device_that_is_not_there(what, tmp_path):
    file = tmp_path / "texts.csv"
    file.write_text("text,label\n" + "".join(f"{e.text},{e.label}\n" for e in reviews(60)))
    family = {"rationalizer": ("bert", "classification"), "compatibility": ("gpt2", "causal")}.get(
        what
    )
    if family is not None:
        for part in raison.testing.tiny_hf(*family, double=False):
            part.save_pretrained(tmp_path / "model")
    model = [] if family is None else ["-m", str(tmp_path / "model")]
    command = [
        sys.executable,
        "-m",
        "raison",
        "train",
        what,
        *model,
        "--data",
        str(file),
        "--device",
        "moon",
    ]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], capture_output=True, text=True
    )
    assert (
        done.returncode in (1, 2)
        and "can't be put on 'moon'" in done.stderr
        and "Traceback" not in done.stderr
    )


def in_its_own_process(*part: str) -> None:
    if "spread" in part:
        pytest.importorskip("accelerate")
    done = subprocess.run(
        [sys.executable, "-m", "tests.models.test_devices", *part],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def reviews(size: int, names=MARKS):
    from raison.core.records import Example

    random, labels = np.random.default_rng(0), list(names)
    made = []
    for number in range(size):
        words = list(random.choice(WORDS, random.integers(4, 8)))
        words.insert(int(random.integers(4)), str(random.choice(names[labels[number % 2]])))
        made.append(Example(" ".join(words), label=labels[number % 2]))
    return made


def some(cases):
    """The first of them where few are asked for."""
    return list(cases)[:1] if FEW else list(cases)


def pair(family: str, task: str):
    """A tiny model of float32 here and there; there without float64."""
    import raison
    from raison.testing import tiny_model

    near = tiny_model(family, task, double=False)
    with coarse():
        far = raison.load(copy.deepcopy(near.hf).to(FAR), near.tokenizer, task=near.task)
    assert far.device.type == FAR
    assert (far.offers, far.removals, far.shares_prefixes) == (
        near.offers,
        near.removals,
        near.shares_prefixes,
    )
    return near, far


def both(models, ask):
    """What is said here and there."""
    found = []
    for model, where in zip(models, (nullcontext, coarse), strict=True):
        with where():
            found.append(ask(model))
    return found


# -- parts, each in a process with two devices ------------------------------------------------------------------


def mixed() -> None:
    """What the other device is good for: it refuses what CUDA refuses."""
    here, there = torch.ones(3), torch.ones(3, device=FAR)
    assert torch.equal((there * 2).cpu(), here * 2) and float(there[0]) == 1.0
    for wrong in (
        lambda: here + there,
        lambda: torch.cat([here, there]),
        lambda: there[None] @ here,
    ):
        with pytest.raises(RuntimeError, match="same device"):
            wrong()
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()
    assert torch.zeros(1, dtype=torch.float64, device=FAR).dtype == torch.float64
    with coarse(), pytest.raises(TypeError, match="float64"):
        there.double()


def explained() -> None:
    import raison
    from raison.testing import FAMILIES
    from raison.testing.model_contract import example_texts_of_contract
    from tests.helpers.cheap_specs import fitting, light, rough

    told, models = (
        count(),
        KINDS if FEW else [(family, task) for family, tasks in FAMILIES.items() for task in tasks],
    )
    for number, (family, task) in enumerate(models):
        twins = pair(family, task)
        text = example_texts_of_contract(twins[0])[1]
        for name in fitting(twins[0])[number::3] if FEW else fitting(twins[0]):

            def ask(model, name=name, text=text):
                found = raison.explain(model, text, method=light(name))
                return (found[0] if isinstance(found, list) else found).scores

            one, other = both(twins, ask)
            apart = np.abs(one - other).max() / max(np.abs(one).max(), 1e-6)
            assert apart < (0.05 if rough(name) else 1e-3), (family, task, name, apart)
            next(told)
    assert next(told) >= (8 if FEW else 25) * len(models)


def spread() -> None:
    """A model over two devices, as accelerate spreads those that are too large for one."""
    import raison
    from raison.testing.model_contract import example_texts_of_contract
    from tests.helpers.cheap_specs import fitting, light, rough

    trials = {
        ("bert", "classification"): ("bert.encoder.layer.1", "bert.pooler", "classifier"),
        ("llama", "causal"): ("model.layers.1", "model.norm", "lm_head"),
        ("t5", "seq2seq"): ("decoder", "lm_head"),
    }
    for (family, task), second in some(trials.items()):
        near, _ = twins = pair(family, task)
        text = example_texts_of_contract(near)[0]
        far = raison.load(over_two(copy.deepcopy(near.hf), second), near.tokenizer, task=near.task)
        assert (far.offers, far.removals) == (near.offers, near.removals)
        assert len({parameter.device for parameter in far.hf.parameters()}) == 2
        for name in fitting(far)[:: 2 if FEW else 1]:
            one, other = (
                found[0]
                if isinstance(found := raison.explain(model, text, method=light(name)), list)
                else found
                for model in (near, far)
            )
            apart = np.abs(one.scores - other.scores).max() / max(np.abs(one.scores).max(), 1e-6)
            assert apart < (0.05 if rough(name) else 1e-3), (family, name, apart)
        one, other = (raison.rationalize(model, text, search="greedy") for model in (near, far))
        alone = lambda found: found[0] if isinstance(found, list) else found  # noqa: E731
        assert np.allclose(alone(one).scores, alone(other).scores, atol=1e-4), twins


def over_two(hf, second):
    """The named modules here, the others there, with the hooks that move what goes from one to the other."""
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module

    there = torch.device(FAR, 0)
    for name, module in hf.named_modules():
        inside = any(name == block or name.startswith(f"{block}.") for block in second)
        place = torch.device("cpu") if inside else there
        for own, kind in (
            (module._parameters, torch.nn.Parameter),
            (module._buffers, lambda tensor: tensor),
        ):
            for key, tensor in own.items():
                own[key] = None if tensor is None else kind(tensor.detach().to(place))
        if name and (module._parameters or module._buffers or name in second):
            add_hook_to_module(module, AlignDevicesHook(place))
    add_hook_to_module(hf, AlignDevicesHook(there, io_same_device=True))
    return hf


def measured() -> None:
    """Searches, metrics and studies."""
    import raison
    from raison.core.records import Example, Span
    from raison.core.registry import metrics, searches
    from raison.studies.check_compatibility import check_compatibility
    from raison.testing.model_contract import example_texts_of_contract

    for family, task in some([*KINDS[1:], KINDS[0], ("bert", "qa")]):
        twins = pair(family, task)
        text = example_texts_of_contract(twins[0])[0]
        for search in ("greedy", "exact") if FEW else searches:

            def chosen(model, text=text, search=search):
                found = raison.rationalize(model, text, search=search)
                return [
                    one.scores.round(3).tolist()
                    for one in (found if isinstance(found, list) else [found])
                ]

            one, other = both(twins, chosen)
            assert one == other, (family, task, search)

    examples = [replace(e, gold=(Span(0, 3),)) for e in reviews(4)]

    def means(model):
        found = raison.evaluate(model, examples, ["gradient_norm", "leave_one_out"], list(metrics))
        return {(cell.method, cell.key): cell.value for cell in found.cells}

    one, other = both(pair("bert", "classification"), means)
    assert one.keys() == other.keys() and len(one) > 10
    assert all(np.isclose(one[key], other[key], rtol=1e-3, atol=1e-4) for key in one), (one, other)
    texts = [Example(" ".join(e.text for e in reviews(12)))]
    one, other = both(
        pair("gpt2", "causal"), lambda model: check_compatibility(model, texts, length=24)
    )
    assert one.trusted == other.trusted and np.isclose(one.guess, other.guess, rtol=1e-4)


def rationalizer() -> None:
    """Trained there, stopped, and gone on with here; with full weights, with an adapter, with GRUs."""
    import raison
    from raison.rationalizers.config import LossWeights, RationalizerTraining
    from raison.rationalizers.train import train_rationalizer
    from raison.testing import tiny_hf

    hf, words = tiny_hf("bert", "classification", double=False)
    plain = Path(tempfile.mkdtemp())
    hf.save_pretrained(plain)
    words.save_pretrained(plain)
    trials = {
        "whole": {"training": RationalizerTraining(epochs=2, batch=16)},
        "plmr": {
            "training": RationalizerTraining(
                epochs=2, batch=16, lora=2, weights=LossWeights(human=1.0)
            )
        },
        "a2r": {"training": RationalizerTraining(epochs=2, batch=16)},
        "rnp_gru": {"training": RationalizerTraining(epochs=2, batch=16)},
    }
    for variant, settings in some(trials.items()):

        def ask(device, variant=variant, settings=settings):
            out = Path(tempfile.mkdtemp()) / "made"
            config = {} if "gru" in variant else {"blocks": 1}
            train_rationalizer(
                str(plain),
                reviews(96),
                out=out,
                variant=variant,
                config=config,
                device=device,
                **settings,
            )
            model = raison.load(str(out), device=device)
            assert model.device.type == device
            with coarse() if device == FAR else nullcontext():
                return raison.explain(model, reviews(1)[0].text, method="own").scores

        with coarse():
            there = ask(FAR)
        assert np.allclose(there, ask("cpu"), atol=1e-3), variant
    in_memory = train_rationalizer(
        copy.deepcopy(hf).to(FAR), reviews(96), tokenizer=words, out=Path(tempfile.mkdtemp()) / "made",
        training=RationalizerTraining(epochs=2, batch=16),
    )  # fmt: skip
    assert in_memory.dev.from_rationale.accuracy >= 0


def classifier() -> None:
    import raison
    from raison.attention_models.train import train_classifier

    trials = (
        {"encoder": "bilstm", "normalizer": "sparsemax"},
        {"encoder": "transformer", "attention": "dot", "heads": 2},
    )
    for config in some(trials):

        def ask(device, config=config):
            out = Path(tempfile.mkdtemp()) / "made"
            training = {"epochs": 2, "batch": 16, "tying": 0.1, "mlm": 0.5}
            found = train_classifier(
                reviews(96),
                out=out,
                config={**config, "width": 16},
                training=training,
                device=device,
            )
            model = raison.load(str(out), device=device)
            return found.dev.loss, raison.explain(model, reviews(1)[0].text, method="own").scores

        (here, scores), (there, others) = ask("cpu"), ask(FAR)
        assert np.isclose(here, there, rtol=1e-4) and np.allclose(scores, others, atol=1e-4), config


def compatibility() -> None:
    """A run that stops on one device goes on on the other."""
    from raison.core.records import Example
    from raison.testing import tiny_hf
    from raison.training import fit, training_folder
    from raison.training.train_compatibility import train_compatibility

    torch.__future__.set_swap_module_params_on_conversion(
        True
    )  # a weight that is used twice stays one, as on CUDA
    for family, task, lora in some([("llama", "causal", None), ("marian", "seq2seq", 2)]):
        hf, words = tiny_hf(family, task, double=False)
        plain = Path(tempfile.mkdtemp())
        hf.save_pretrained(plain)
        words.save_pretrained(plain)
        data = [e.text if task == "causal" else Example(e.text, target=e.text) for e in reviews(60)]
        settings = {"steps": 6, "batch": 4, "length": 16, "lora": lora, "save_every": 0.0}

        def ask(devices, data=data, settings=settings, plain=plain):
            out = Path(tempfile.mkdtemp()) / "made"
            for device in devices[:-1]:
                stopping = fit.training_step

                def step(*args, stopping=stopping):
                    if args[-1].step == 3:
                        raise KeyboardInterrupt
                    stopping(*args)

                fit.training_step = step
                with pytest.raises(KeyboardInterrupt):
                    train_compatibility(str(plain), data, out=out, device=device, **settings)
                fit.training_step = stopping
                assert (out / training_folder.CHECKPOINT).exists()
            return train_compatibility(str(plain), data, out=out, device=devices[-1], **settings)[
                "after"
            ]["perplexity"]

        here = ask(["cpu"])
        for devices in some([[FAR, "cpu"], [FAR], ["cpu", FAR]]):
            assert np.isclose(here, ask(devices), rtol=1e-3), (family, devices)


def audited() -> None:
    import raison
    from raison.attention_models.train import train_classifier
    from raison.studies.audit.run_audit import audit

    out = Path(tempfile.mkdtemp()) / "made"
    training = {"epochs": 2, "batch": 16}
    train_classifier(reviews(96), out=out, config={"width": 16}, training=training)

    def ask(device):
        model = raison.load(str(out), device=device)
        return audit(
            model,
            reviews(8),
            permutations=3,
            adversaries=["frozen", "unfrozen"],
            epochs=1,
            train=reviews(40),
        )

    here = ask("cpu")
    with coarse():
        there = ask(FAR)
    assert here.agreement and close(here, there)
    twins = pair("bert", "classification")
    labels = dict(zip(twins[0].labels, MARKS.values(), strict=False))
    one, other = both(twins, lambda model: audit(model, reviews(6, labels), permutations=3, show=1))
    assert close(one, other)


def close(one, other) -> bool:
    """The same, up to rounding."""
    if is_dataclass(one):
        return close(vars(one), vars(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(close, one, other))
    return one == other or (
        isinstance(one, float)
        and bool(np.isclose(one, other, rtol=0.01, atol=1e-3, equal_nan=True))
    )


if __name__ == "__main__":
    import torch

    from tests.helpers.fake_device import FAR, coarse

    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
