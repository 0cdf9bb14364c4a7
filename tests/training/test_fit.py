"""The training loop."""

from __future__ import annotations

import math
import signal

import pytest
import torch

from raison.core import progress
from raison.core.errors import InputError
from raison.training.fit import TrainingStopped, fit, progress_log_lines
from raison.training.fit_settings import FitSettings
from tests.helpers.training import one_group, problem


def test_the_loop_is_the_one_that_anybody_would_write(tmp_path):
    model, feed, loss = problem()
    done = fit(
        model,
        one_group(model),
        feed,
        loss,
        FitSettings(tmp_path, 7, warm=0.3, accumulate=2, clip=0.5, seed=3),
    )
    other, feed, loss = problem()
    optimizer = torch.optim.AdamW(other.parameters(), weight_decay=0.01, fused=True)
    expected = []
    for step in range(7):
        total = 0.0
        for part in (2 * step, 2 * step + 1):
            torch.manual_seed(3 * 1_000_003 + part)
            value = loss(other, feed(part), part) / 2
            value.backward()
            total += value.item()
        torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        rate = [0.5, 1, 1, 4 / 5, 3 / 5, 2 / 5, 1 / 5][step]
        optimizer.param_groups[0]["lr"] = 1e-2 * rate
        optimizer.step()
        optimizer.zero_grad()
        expected.append(total)
    assert done.losses == pytest.approx(expected, abs=1e-7)
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True)
    )


def test_only_the_groups_are_trained_each_at_its_rate(tmp_path):
    model, feed, loss = problem()
    before = [p.detach().clone() for p in model.parameters()]
    groups = [
        {"params": model[0].parameters(), "peak": 1e-2},
        {"params": [model[3].bias], "peak": 0.0},
    ]
    fit(model, groups, feed, loss, FitSettings(tmp_path, 2))
    moved = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert moved == [True, True, False, False]
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert [tuple(p.shape) for p in state["trained"]] == [
        (16, 6),
        (16,),
        (1,),
    ]  # only what is trained
    with pytest.raises(InputError, match="Nothing of this model is to be trained"):
        fit(model, [], feed, loss, FitSettings(tmp_path, 2))


def test_looking_changes_nothing_and_is_told(tmp_path, capsys):
    runs = []
    for name, every in (("often", 2), ("never", 0)):
        model, feed, loss = problem()
        modes = []

        def look(model=model, modes=modes):
            modes.append(model.training)
            return {"number": torch.rand(3).sum().item()}

        state = torch.get_rng_state()
        with progress.listen(progress_log_lines(every=1e9)):
            done = fit(
                model,
                one_group(model),
                feed,
                loss,
                FitSettings(tmp_path / name, 5, every=every, before=True),
                look,
            )
        assert torch.equal(
            state, torch.get_rng_state()
        )  # the caller's own randomness is not touched
        assert not any(modes)
        runs.append((done, [p.detach().clone() for p in model.parameters()]))
        (tmp_path / name).mkdir(exist_ok=True)
    (often, weights), (never, same) = runs
    assert [entry["step"] for entry in often.history] == [0, 2, 4, 5]
    assert [entry["step"] for entry in never.history] == [0, 5]
    assert often.losses == never.losses and all(map(torch.equal, weights, same))
    told = capsys.readouterr().err
    assert "2/5  loss " in told and " s left; number " in told


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for name in ("often", "never"):
        (tmp_path / name).mkdir()


class Interrupting:
    """A feed that sends a signal in one of its parts."""

    def __init__(self, feed, part, number=signal.SIGINT):
        self.feed, self.part, self.number = feed, part, number

    def __call__(self, part):
        if part == self.part:
            signal.raise_signal(self.number)
        return self.feed(part)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_the_step_and_the_same_call_goes_on(tmp_path, number):
    model, feed, loss = problem()
    look = lambda: {"sum": sum(float(p.sum()) for p in model.parameters())}  # noqa: E731
    fit_settings = FitSettings(tmp_path / "often", 8, every=3, accumulate=2, settings={"lr": 1})
    handlers = signal.getsignal(signal.SIGINT)
    whole = fit(model, one_group(model), feed, loss, fit_settings, look)
    expected = [p.detach().clone() for p in model.parameters()]
    (fit_settings.out / "checkpoint.pt").unlink()
    model, feed, loss = problem()
    with pytest.raises(
        TrainingStopped, match="Stopped after step 4 of 8: the same command goes on from there."
    ) as stopped:
        fit(model, one_group(model), Interrupting(feed, 6, number), loss, fit_settings, look)
    assert stopped.value.exit_code == 130
    assert signal.getsignal(signal.SIGINT) is handlers
    model, _, _ = problem(1)  # other weights: the checkpoint's count
    heard = []
    with progress.listen(lambda done, total, what: heard.append((done, total, what))):
        again = fit(model, one_group(model), feed, loss, fit_settings, look)
    assert heard[0] == (4, 8, "going on after step 4")
    assert again.losses == whole.losses and again.history == whole.history
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    model, feed, _ = problem()
    loss = lambda model, batch, part: model(batch).sum() * (math.nan if part == 2 else 1)  # noqa: E731
    with pytest.raises(
        InputError, match="The loss is nan in step 3: train with a smaller learning rate"
    ):
        fit(model, one_group(model), feed, loss, FitSettings(tmp_path, 5))
