"""The one training loop: what is trained, on what, by which loss; stopping, going on and repeating are done here.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from raison.core import progress
from raison.core.errors import InputError, RaisonError
from raison.core.files import remove_half_written, write_whole
from raison.core.outputs import check_folder
from raison.core.spec import one_of, whole
from raison.models.weight_fingerprint import fingerprint_of_weights

__all__ = [
    "BEST",
    "CHECKPOINT",
    "OWN",
    "Course",
    "Fitted",
    "Stopped",
    "Unsaved",
    "check_free",
    "fit",
    "lines",
    "on_cpu",
    "prepared",
    "saved",
    "writing",
]

CHECKPOINT = "checkpoint.pt"
BEST = "best.pt"  # weights of the best epoch
OWN = "own_targets.json"  # what a model has written itself
SCHEDULES = ("linear", "constant")
SEEDS = 2**31 - 1  # the largest seed
MODELS = ("model.safetensors", "adapter_model.safetensors", "pytorch_model.bin", "config.json")
PRIME = 1_000_003  # more parts than a run has: seeds of two runs do not meet


class Stopped(RaisonError):
    """Someone pressed Ctrl-C or sent SIGTERM; the checkpoint is on the disk."""

    exit_code = 130


class Unsaved(RaisonError):
    """A file could not be written: the disk is full, mostly."""


@dataclass(frozen=True)
class Course:
    """How a model is trained."""

    out: Path  # folder of the checkpoint
    steps: int  # of the optimizer
    settings: dict[str, Any] = field(default_factory=dict)  # a checkpoint made under other settings is not continued
    seed: int = 0
    accumulate: int = 1  # batches of one step
    schedule: str = "linear"  # linear: down to 0 at the end; constant
    warm: float = 0.1  # share of the steps until the rate is full
    clip: float = 1.0  # largest norm of the gradient; 0: as it is
    decay: float = 0.01  # weight decay of AdamW
    betas: tuple[float, float] = (0.9, 0.999)  # of AdamW
    bfloat16: bool = False  # autocast: matrix products in bfloat16, weights and their updates in float32
    every: int = 0  # look each so many steps; 0: at the end only
    before: bool = False  # look before the first step too
    save_every: float = 60.0  # seconds between two checkpoints

    def __post_init__(self) -> None:
        whole("steps", self.steps, 1)
        whole("accumulate", self.accumulate, 1)
        whole("seed", self.seed, 0, SEEDS)
        whole("every", self.every, 0)
        one_of("schedule", self.schedule, SCHEDULES)
        for name in ("warm", "clip", "decay", "save_every"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is a number from 0 up, not {getattr(self, name)}.")

    def rate(self, step: int) -> float:
        """The share of the peak rate that step `step` (from 0) has."""
        rise = max(1, int(self.warm * self.steps)) if self.warm else 0
        if step < rise:
            return (step + 1) / rise
        return 1.0 if self.schedule == "constant" else (self.steps - step) / max(1, self.steps - rise)


@dataclass
class Fitted:
    """What a run has done so far."""

    step: int = 0
    losses: list[float] = field(default_factory=list)  # of each step, mean over its parts
    history: list[dict[str, Any]] = field(default_factory=list)  # what `look` saw, with the step
    seconds: float = 0.0  # CPU time


Group = dict[str, Any]  # {"params": [...], "peak": rate}


def fit(
    model: torch.nn.Module,
    groups: Sequence[Group],
    feed: Callable[[int], Any],
    loss: Callable[[torch.nn.Module, Any, int], torch.Tensor],
    course: Course,
    look: Callable[[], dict[str, Any]] | None = None,
    enough: Callable[[list[dict[str, Any]]], bool] = lambda history: False,
) -> Fitted:
    """Train in place, from the checkpoint if there is one.

    `groups` are the trained parameters with their peak rates; part k of the run trains on `feed(k)` by
    `loss(model, batch, k)`. `look()` measures something every so many steps; the model is in evaluation mode then. The
    run ends early where `enough` says so of all that was seen.
    """
    made = [{"params": list(group["params"]), "peak": group["peak"]} for group in groups]
    if not any(group["params"] for group in made):
        raise InputError("Nothing of this model is to be trained: unfreeze some of its parameters.")
    trained = [parameter for group in made for parameter in group["params"]]
    device = trained[0].device
    # in one pass over the weights: a large table of words costs more by torch's default than a small LSTM's gradient
    fused = device.type in ("cpu", "cuda")
    optimizer = torch.optim.AdamW(made, lr=0.0, weight_decay=course.decay, betas=course.betas, fused=fused)
    learning = {id(parameter) for parameter in trained}
    still = fingerprint_of_weights(
        (name, parameter) for name, parameter in model.named_parameters() if id(parameter) not in learning
    )
    done = restored(course, trained, optimizer, still)
    watch = Watch(course, done, still)
    with stop_asked() as stop, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if course.before and look is not None and not done.history and not done.step:
            done.history.append({"step": 0, **looked(model, look, course)})
            watch.say(done, done.history[-1])
        while done.step < course.steps and not enough(done.history):
            one_step(model, optimizer, trained, feed, loss, course, done)
            seen = None
            if look is not None and (done.step == course.steps or (course.every and done.step % course.every == 0)):
                seen = {"step": done.step, **looked(model, look, course)}
                done.history.append(seen)
            ended = seen is not None and enough(done.history)
            last = done.step == course.steps or ended
            asked = stop()  # asked once: whoever is told so finds a checkpoint
            if last or asked or watch.due():
                watch.save(done, trained, optimizer)
            watch.say(done, seen)
            if asked and not last:
                raise Stopped(f"Stopped after step {done.step} of {course.steps}: the same command goes on from there.")
    done.seconds = watch.spent()
    model.eval()
    return done


def one_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    trained: list[torch.nn.Parameter],
    feed: Callable[[int], Any],
    loss: Callable[[torch.nn.Module, Any, int], torch.Tensor],
    course: Course,
    done: Fitted,
) -> None:
    """One update of the weights."""
    model.train()
    total = 0.0
    for part in range(done.step * course.accumulate, (done.step + 1) * course.accumulate):
        seeded(trained[0].device, course.seed * PRIME + part)  # the model's own dropout
        batch = feed(part)
        with torch.autocast(trained[0].device.type, torch.bfloat16, enabled=course.bfloat16):
            value = loss(model, batch, part)
        told = float(value.detach())
        if not math.isfinite(told):
            raise InputError(
                f"The loss is {told} in step {done.step + 1}: train with a smaller learning rate, or without bfloat16."
            )
        (value / course.accumulate).backward()
        total += told / course.accumulate
    if course.clip:
        torch.nn.utils.clip_grad_norm_(trained, course.clip)
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * course.rate(done.step)
    optimizer.step()
    optimizer.zero_grad()
    done.step += 1
    done.losses.append(total)


def seeded(device: torch.device, seed: int) -> None:
    """The generator that dropout draws from; torch.manual_seed looks for every kind of device, at 1 ms a call."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@torch.inference_mode()
def looked(model: torch.nn.Module, look: Callable[[], dict[str, Any]], course: Course) -> dict[str, Any]:
    """What `look` sees; whatever it draws is a function of the seed, and the progress it reports is nobody's news."""
    model.eval()
    torch.manual_seed(course.seed)
    with progress.silence():
        return dict(look())


class Watch:
    """Clocks of a run: when to save, what to say, how long it will take."""

    def __init__(self, course: Course, done: Fitted, still: str):
        self.course, self.still, self.start, self.began = course, still, time.monotonic(), done.step
        self.saved, self.cpu, self.before = self.start, time.process_time(), done.seconds
        if done.step:
            progress.report(done.step, course.steps, f"going on after step {done.step}")

    def due(self) -> bool:
        return time.monotonic() - self.saved >= self.course.save_every

    def spent(self) -> float:
        return self.before + time.process_time() - self.cpu

    def save(self, done: Fitted, trained: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer) -> None:
        done.seconds = self.spent()
        state = {
            "settings": self.course.settings,
            "done": vars(done),
            "trained": [parameter.detach().cpu() for parameter in trained],
            "still": self.still,  # a mark of the weights that are not trained, as the run found them
            "optimizer": on_cpu(optimizer.state_dict()),  # so that a run can go on on another device
        }
        path = self.course.out / CHECKPOINT
        there = "the last checkpoint is kept: make room, and the same command goes on from it"
        with saved(path, there if path.exists() else "there is no checkpoint yet: make room first") as half:
            torch.save(state, half)
        self.saved = time.monotonic()

    def say(self, done: Fitted, seen: dict[str, Any] | None) -> None:
        """Tell how far the run is; what was measured now stands behind a semicolon."""
        parts = []
        if done.losses:
            recent = done.losses[max(self.began, done.step - 20) :]
            parts.append(f"loss {sum(recent) / max(1, len(recent)):.3f}")
        if done.step > self.began:
            left = (time.monotonic() - self.start) / (done.step - self.began) * (self.course.steps - done.step)
            parts.append(f"{spelled(left)} left")
        what = ", ".join(parts)
        if seen is not None:
            numbers = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in seen.items() if k != "step"]
            what = f"{what}; {', '.join(numbers)}" if numbers else what
        progress.report(done.step, self.course.steps, what)


def spelled(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def lines(every: float = 15.0) -> Callable[[int, int, str], None]:
    """A listener of `raison.core.progress` for logs: a line now and then, and whenever something was measured."""
    said = -every

    def listener(done: int, total: int, what: str) -> None:
        nonlocal said
        now = time.monotonic()
        if ";" in what or done == total or now - said >= every:
            said = now
            print(f"{done}/{total}  {what}", file=sys.stderr, flush=True)

    return listener


@contextmanager
def saved(path: Path, advice: str = "make room, and give the same command again") -> Iterator[Path]:
    """A file that is written whole or not at all: yields the name to write to, and puts it in place at the end."""
    try:
        with write_whole(path, durable=True) as half:
            yield half
    except (OSError, RuntimeError) as error:  # torch tells a failed write by a RuntimeError
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0].rstrip(".")
        raise Unsaved(f"{path} could not be written ({reason}); {advice}.") from error


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """The result of a run is being written: where that fails, the checkpoint is still there."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unsaved(
            f"The result could not be written to {str(folder)!r} ({reason}): make room, and the same command writes it "
            "from the last checkpoint."
        ) from None


def check_free(folder: Path, report: str, early: Sequence[str] = ()) -> None:
    """Refuse a folder to train in that holds a model or something foreign; `early` are files that this training writes
    before its first checkpoint."""
    there = [name for name in (report, *MODELS) if (folder / name).exists()]
    if there and (there[0] == report or not (folder / CHECKPOINT).exists()):  # with a checkpoint they are this run's
        what = "a finished model" if there[0] == report else f"somebody's model ({there[0]})"
        raise InputError(f"{str(folder)!r} has {what}: delete it, or choose another out (--out).")
    if not (folder / CHECKPOINT).exists():  # what a run leaves that is killed before its first
        check_folder(folder, lambda name: name in (BEST, OWN, *early), "a training (--out)")


def prepared(folder: Path, report: str, early: Sequence[str] = ()) -> None:
    """A folder to write to; the `report` in it comes last, so where it stands a model is finished."""
    check_free(folder, report, early)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_half_written(folder)
    except OSError as error:
        raise InputError(f"{str(folder)!r} can't be written ({error.strerror}): choose another out (--out).") from None


def restored(course: Course, trained: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer, still: str) -> Fitted:
    """What the checkpoint says was done, with weights and optimizer set to it; nothing if there is none."""
    path = course.out / CHECKPOINT
    if not path.exists():
        return Fitted()
    try:
        state = torch.load(path, weights_only=True, map_location="cpu")
        settings, done = state["settings"], Fitted(**state["done"])
    except Exception as error:  # torch has no one error for a file that it can't read
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{path} can't be read ({reason}): delete it to start anew.") from error
    names = [*course.settings, *settings]
    other = [name for name in names if settings.get(name, ...) != course.settings.get(name, ...)]
    if other:
        raise InputError(f"{path} was made with another {other[0]}: delete it, or give its settings to go on with it.")
    alike = [p.shape for p in trained] == [value.shape for value in state["trained"]]
    if not alike or state.get("still", still) != still:
        raise InputError(f"{path} was made with another model: delete it, or name its model to go on with it.")
    with torch.no_grad():
        for parameter, value in zip(trained, state["trained"], strict=True):
            parameter.copy_(value)
    optimizer.load_state_dict(state["optimizer"])
    return done


def on_cpu(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.cpu()
    if isinstance(state, dict):
        return {name: on_cpu(value) for name, value in state.items()}
    return [on_cpu(value) for value in state] if isinstance(state, (list, tuple)) else state


@contextmanager
def stop_asked() -> Iterator[Callable[[], bool]]:
    """Whether someone wants the run to stop: asked between two steps, so that no step is cut in half."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread hears signals
        yield lambda: False
        return
    names = (signal.SIGINT, signal.SIGTERM)

    def hear(number: int, frame: Any) -> None:
        asked.append(number)
        if len(asked) > 2:  # a step takes too long for someone: the last checkpoint will do
            raise KeyboardInterrupt

    before = [signal.signal(name, hear) for name in names]
    try:
        yield lambda: bool(asked)
    finally:
        for name, handler in zip(names, before, strict=True):
            signal.signal(name, handler)
