"""Stopping, killing, going on, full disks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from raison.core.errors import InputError
from raison.models.load import load
from raison.testing import tiny_hf
from raison.testing.tiny import TEXTS
from raison.training import fit as loop
from raison.training.fit import fit
from raison.training.fit_settings import FitSettings
from raison.training.train_compatibility import train_compatibility
from raison.training.training_folder import TrainingNotSaved
from tests.helpers.training import one_group, problem


def test_other_settings_are_refused(tmp_path):
    model, feed, loss = problem()
    fit(
        model, one_group(model), feed, loss, FitSettings(tmp_path, 2, settings={"lr": 1, "seed": 2})
    )
    for settings in ({"lr": 2, "seed": 2}, {"seed": 2}, {"lr": 1, "seed": 2, "more": 3}):
        with pytest.raises(
            InputError, match="was made with another (lr|more): delete it, or give its settings"
        ):
            fit(model, one_group(model), feed, loss, FitSettings(tmp_path, 2, settings=settings))
    other = torch.nn.Linear(3, 3)
    with pytest.raises(InputError, match="was made with another model"):
        fit(
            other,
            one_group(other),
            feed,
            loss,
            FitSettings(tmp_path, 2, settings={"lr": 1, "seed": 2}),
        )
    (tmp_path / "checkpoint.pt").write_bytes(b"half")
    with pytest.raises(InputError, match="can't be read .*: delete it to start anew"):
        fit(model, one_group(model), feed, loss, FitSettings(tmp_path, 2))


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("PytorchStreamWriter failed")]
)
def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch, error):
    model, feed, loss = problem()
    fit_settings = FitSettings(tmp_path, 6, save_every=0.0)
    real, calls = torch.save, []

    def failing(state, place):
        calls.append(place)
        if len(calls) == 4:
            Path(place).write_bytes(b"some of it")
            raise error
        real(state, place)

    with monkeypatch.context() as patch:
        patch.setattr(loop.torch, "save", failing)
        with pytest.raises(
            TrainingNotSaved, match="could not be written .*the last checkpoint is kept: make room"
        ) as told:
            fit(model, one_group(model), feed, loss, fit_settings)
    assert str(told.value).count(".  ") == 0 and "\n" not in str(told.value)
    assert sorted(p.name for p in tmp_path.glob("checkpoint*")) == ["checkpoint.pt"]
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["done"]["step"] == 3
    again = fit(model, one_group(model), feed, loss, fit_settings)
    fresh, feed, loss = problem()
    (tmp_path / "checkpoint.pt").unlink()
    assert fit(fresh, one_group(fresh), feed, loss, fit_settings).losses == again.losses


def test_a_full_disk_before_any_checkpoint(tmp_path, monkeypatch):
    def failing(state, place):
        raise OSError(28, "No space left on device")

    model, feed, loss = problem()
    monkeypatch.setattr(loop.torch, "save", failing)
    with pytest.raises(
        TrainingNotSaved,
        match="No space left on device.*there is no checkpoint yet: make room first",
    ):
        fit(model, one_group(model), feed, loss, FitSettings(tmp_path, 1))


KILLED = """
    import os, signal, sys, torch
    torch.set_num_threads(1)
    from raison.testing import tiny_hf
    from raison.models.load import load
    from raison.training import feed, train_compatibility
    out, part = sys.argv[1], int(sys.argv[2])

    class Killing(feed.BatchFeed):
        def __call__(self, number):
            if number == part:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(number)

    train_compatibility.BatchFeed = Killing
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    texts = [f"{text} {i}" for i in range(12) for text in TRAINING_TEXTS]
    train_compatibility.train_compatibility(
        load(hf, tokenizer), texts, out=out, length=24, batch=4, steps=6, accumulate=2, lora=2, save_every=0.0
    )
"""


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    """SIGKILL in the middle of a step: no handler runs, and what is on the disk must do."""
    pytest.importorskip("peft")
    code = textwrap.dedent(KILLED).replace("TRAINING_TEXTS", repr(TEXTS))
    run = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "killed")]
    killed = subprocess.run(
        [*run, "7"], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert torch.load(tmp_path / "killed" / "checkpoint.pt", weights_only=True)["done"]["step"] == 3
    assert not (tmp_path / "killed" / "training.json").exists()
    texts = [f"{text} {i}" for i in range(12) for text in TEXTS]
    settings = dict(length=24, batch=4, steps=6, accumulate=2, lora=2, save_every=0.0)
    reports = []
    for name in ("killed", "whole"):
        hf, tokenizer = tiny_hf("llama", "causal", double=False)
        reports.append(
            train_compatibility(load(hf, tokenizer), texts, out=tmp_path / name, **settings)
        )
    assert reports[0]["losses"] == reports[1]["losses"] and len(reports[0]["losses"]) == 6
    assert reports[0]["history"] == reports[1]["history"]
    weights = [
        (tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("killed", "whole")
    ]
    assert weights[0] == weights[1]
