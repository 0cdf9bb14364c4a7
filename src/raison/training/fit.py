"""The one training loop: steps, checkpoints, stopping, going on, and how far it is as progress or log lines.

    parts = accumulate batches;  g = mean of their gradients;  clip(g);  AdamW with the rate peak · schedule(step)

Everything random in part k of a run is a function of (seed, k), so a run that was stopped or killed and goes on from
its checkpoint gives the same numbers, bit for bit, as one that was not (same machine and library versions).
"""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

import torch

from raison.core import progress
from raison.core.errors import InputError, RaisonError
from raison.models.weight_fingerprint import fingerprint_of_weights
from raison.training.fit_settings import (
    FitProgress,
    FitSettings,
    Measurements,
    ParameterGroup,
)
from raison.training.training_folder import (
    restore_checkpoint,
    save_checkpoint,
)

__all__ = ["TrainingStopped", "fit", "progress_log_lines"]

PRIME = 1_000_003  # more parts than a run has: seeds of two runs do not meet
RECENT = 20  # steps whose mean loss is told

Batch: TypeAlias = Any  # what the caller's `feed` gives and its `loss` takes
BatchOfPart: TypeAlias = Callable[[int], Batch]
Loss: TypeAlias = Callable[[torch.nn.Module, Batch, int], torch.Tensor]
Look: TypeAlias = Callable[[], Measurements]


class TrainingStopped(RaisonError):
    """Someone pressed Ctrl-C or sent SIGTERM; the checkpoint is on the disk."""

    exit_code = 130


@dataclass(frozen=True)
class RunningTraining:
    """What one step needs."""

    model: torch.nn.Module
    trained: list[torch.nn.Parameter]
    optimizer: torch.optim.Optimizer
    feed: BatchOfPart
    loss: Loss
    fit_settings: FitSettings

    @property
    def device(self) -> torch.device:
        return self.trained[0].device

    def frozen_weights(self) -> str:
        """The fingerprint of the weights that are not trained."""
        learning = {id(parameter) for parameter in self.trained}
        named = self.model.named_parameters()
        return fingerprint_of_weights(
            (name, weight) for name, weight in named if id(weight) not in learning
        )


def fit(
    model: torch.nn.Module,
    groups: Sequence[ParameterGroup],
    feed: BatchOfPart,
    loss: Loss,
    fit_settings: FitSettings,
    look: Look | None = None,
    enough: Callable[[list[Measurements]], bool] = lambda history: False,
) -> FitProgress:
    """Train in place, from the checkpoint if there is one.

    `groups` are the trained parameters with their peak rates; part k of the run trains on `feed(k)` by
    `loss(model, batch, k)`. `look()` measures something every so many steps; the model is in evaluation mode then. The
    run ends early where `enough` says so of all that was seen.
    """
    training = training_from_start(model, groups, feed, loss, fit_settings)
    frozen = training.frozen_weights()
    done = restore_checkpoint(fit_settings, training.trained, training.optimizer, frozen=frozen)
    watch = TrainingWatch(training, done, frozen)
    devices = []
    if training.device.type == "cuda":
        devices.append(training.device)
    with training_stop_asked() as stop, torch.random.fork_rng(devices=devices):
        nothing_done = not done.history and not done.step
        if fit_settings.before and look is not None and nothing_done:
            done.history.append({"step": 0, **look_at_trained_model(model, look, fit_settings)})
            watch.say(done, done.history[-1])
        while done.step < fit_settings.steps and not enough(done.history):
            training_step(training, done)
            seen = None
            if look is not None and fit_settings.looks_after(done.step):
                seen = {"step": done.step, **look_at_trained_model(model, look, fit_settings)}
                done.history.append(seen)
            last = done.step == fit_settings.steps or (seen is not None and enough(done.history))
            asked = stop()  # asked once: whoever is told so finds a checkpoint
            if last or asked or watch.due():
                watch.save(done)
            watch.say(done, seen)
            if asked and not last:
                raise TrainingStopped(
                    f"Stopped after step {done.step} of {fit_settings.steps}: the same command goes on from there."
                )
    done.seconds = watch.spent()
    model.eval()
    return done


def training_from_start(
    model: torch.nn.Module,
    groups: Sequence[ParameterGroup],
    feed: BatchOfPart,
    loss: Loss,
    fit_settings: FitSettings,
) -> RunningTraining:
    """A training with its optimizer, in which nothing has moved yet."""
    optimizer_groups = []
    trained: list[torch.nn.Parameter] = []
    for group in groups:
        parameters = list(group["params"])
        optimizer_groups.append({"params": parameters, "peak": group["peak"]})
        trained += parameters
    if not trained:
        raise InputError("Nothing of this model is to be trained: unfreeze some of its parameters.")
    optimizer = torch.optim.AdamW(
        optimizer_groups,
        lr=0.0,
        weight_decay=fit_settings.decay,
        betas=fit_settings.betas,
        # in one pass over the weights: else a large table of words costs more than a small LSTM's gradient
        fused=trained[0].device.type in ("cpu", "cuda"),
    )
    return RunningTraining(model, trained, optimizer, feed, loss, fit_settings)


def training_step(training: RunningTraining, done: FitProgress) -> None:
    """One update of the weights."""
    fit_settings = training.fit_settings
    training.model.train()
    total = 0.0
    first_part = done.step * fit_settings.accumulate
    for part in range(first_part, first_part + fit_settings.accumulate):
        seed_training_dropout(training.device, fit_settings.seed * PRIME + part)
        batch = training.feed(part)
        with torch.autocast(training.device.type, torch.bfloat16, enabled=fit_settings.bfloat16):
            loss = training.loss(training.model, batch, part)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise InputError(
                f"The loss is {value} in step {done.step + 1}: train with a smaller learning rate, or without bfloat16."
            )
        (loss / fit_settings.accumulate).backward()  # type: ignore[no-untyped-call]
        total += value / fit_settings.accumulate
    if fit_settings.clip:
        torch.nn.utils.clip_grad_norm_(training.trained, fit_settings.clip)
    for group in training.optimizer.param_groups:
        group["lr"] = group["peak"] * fit_settings.rate(done.step)
    training.optimizer.step()
    training.optimizer.zero_grad()
    done.step += 1
    done.losses.append(total)


def seed_training_dropout(device: torch.device, seed: int) -> None:
    """Seed the model's own dropout; torch.manual_seed looks for every kind of device, at 1 ms a call."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@torch.inference_mode()
def look_at_trained_model(
    model: torch.nn.Module, look: Look, fit_settings: FitSettings
) -> Measurements:
    """What `look` sees; whatever it draws is a function of the seed, and the progress it reports is nobody's news."""
    model.eval()
    torch.manual_seed(fit_settings.seed)
    with progress.silence():
        return dict(look())


class TrainingWatch:
    """Clocks of a run: when to save, what to say, how long it will take."""

    def __init__(self, training: RunningTraining, done: FitProgress, frozen: str):
        self.training, self.fit_settings, self.frozen = training, training.fit_settings, frozen
        self.start = self.last_saved = time.monotonic()
        self.first_step = done.step
        self.cpu, self.seconds_before = time.process_time(), done.seconds
        if done.step:
            progress.report(done.step, self.fit_settings.steps, f"going on after step {done.step}")

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self.last_saved >= self.fit_settings.save_every

    def spent(self) -> float:
        """CPU seconds of the run, in all sessions."""
        return self.seconds_before + time.process_time() - self.cpu

    def save(self, done: FitProgress) -> None:
        done.seconds = self.spent()
        save_checkpoint(
            self.fit_settings,
            done,
            self.training.trained,
            self.training.optimizer,
            frozen=self.frozen,
        )
        self.last_saved = time.monotonic()

    def say(self, done: FitProgress, seen: Measurements | None) -> None:
        """Tell how far the run is; what was measured now stands behind a semicolon."""
        parts = []
        if done.losses:
            first = max(self.first_step, done.step - RECENT)
            recent = done.losses[first:]
            mean = sum(recent) / max(1, len(recent))
            parts.append(f"loss {mean:.3f}")
        steps = done.step - self.first_step
        if steps > 0:
            seconds_of_step = (time.monotonic() - self.start) / steps
            left = seconds_of_step * (self.fit_settings.steps - done.step)
            parts.append(f"{format_training_duration(left)} left")
        what = ", ".join(parts)
        numbers = []
        for name, value in (seen or {}).items():
            if name != "step":
                numbers.append(format_training_measurement(name, value))
        if numbers:
            what = f"{what}; {', '.join(numbers)}"
        progress.report(done.step, self.fit_settings.steps, what)


def progress_log_lines(every: float = 15.0) -> Callable[[int, int, str], None]:
    """A listener of `raison.core.progress`: a line every so many seconds, and whenever something was measured."""
    last = -every

    def listener(done: int, total: int, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if ";" in what or done == total or now - last >= every:
            last = now
            print(f"{done}/{total}  {what}", file=sys.stderr, flush=True)

    return listener


def format_training_duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def format_training_measurement(name: str, value: object) -> str:
    if isinstance(value, float):
        return f"{name} {value:.4g}"
    return f"{name} {value}"


@contextmanager
def training_stop_asked() -> Iterator[Callable[[], bool]]:
    """Whether someone wants the run to stop: asked between two steps, so that no step is cut in half."""
    asked: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
    ):  # only the main thread hears signals
        yield lambda: False
        return

    def hear(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        if len(asked) > 2:  # a step takes too long for someone: the last checkpoint will do
            raise KeyboardInterrupt

    signals = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(each, hear) for each in signals]
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in zip(signals, handlers, strict=True):
            signal.signal(each, handler)
