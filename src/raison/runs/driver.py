"""Start or resume a run: plan it, hand its shards out until all are done, and say how far it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from raison.api import load
from raison.core.errors import InputError, ModelError, RaisonError
from raison.core.outputs import refuse_foreign, run_around
from raison.models.load import looks_local
from raison.runs.identity import environment
from raison.runs.lock import owned
from raison.runs.plan import Header, fingerprint_of, header_of, make_plan, shard_of
from raison.runs.spec import Means, RunSpec
from raison.runs.status import Status, Tally
from raison.runs.storage import Local, Place, place_of
from raison.runs.store import done_shards, environment_of, explanations, failures, homes, retried, spec_of
from raison.runs.worker import Careful, Done, Worker
from raison.studies.method_lists import method_list

__all__ = ["Death", "Executor", "Interrupted", "run"]

# what is in the folder of a run
OURS = {
    "spec.json", "environment.json", "status.json", "lock", "plan", "shards", "costs", "export", "damaged", "retried",
}  # fmt: skip
OTHER = 2  # tries of a text that ends its worker or takes too long
KILLED = 5  # likewise, where the worker was killed from outside: somebody else may be the reason


class Interrupted(RaisonError):
    """Somebody pressed Ctrl-C: what is done is kept."""

    exit_code = 130


@dataclass(frozen=True)
class Death:
    """A worker ended while it worked on a shard."""

    shard: int
    chunk: int  # that it was about to do; −1: none yet
    text: int  # place of the text in the shard, where texts are done one by one; −1: the whole chunk
    reason: str
    outside: bool  # it was killed, and did not end by itself


Event = Done | Death | str  # a string: something that people should know


class Executor(Protocol):
    """Does shards somewhere; several at once."""

    room: int  # shards that it takes at a time

    def submit(self, number: int, careful: Careful) -> None: ...

    def events(self, wait: float) -> Iterator[Event]: ...

    def under(self) -> dict[int, int]: ...  # texts that are done, of each shard that is under way

    def close(self) -> None: ...


@dataclass
class Queue:
    """Shards that are to do, and what their failures have taught."""

    todo: list[int]
    careful: dict[int, Careful] = field(default_factory=dict)
    deaths: dict[tuple[int, int, int], list[bool]] = field(default_factory=dict)

    def learn(self, death: Death, place: Place) -> str:
        """Be more careful with a shard after a death; it is to be done again. Returns what to tell."""
        self.todo.insert(0, death.shard)
        careful = self.careful.setdefault(death.shard, Careful())
        count = self.deaths.setdefault((death.shard, death.chunk, death.text), [])
        count.append(death.outside)
        own = sum(not outside for outside in count)
        if death.chunk < 0 or (own < OTHER and len(count) < KILLED):
            return f"a worker ended in shard {death.shard} ({death.reason}): it is done again"
        if death.text < 0:
            careful.single.add(death.chunk)
            return f"a worker ended again in shard {death.shard} ({death.reason}): its texts are done one by one"
        careful.poison[death.text] = death.reason
        text = shard_of(place, death.shard).texts[death.text]
        return f"the text {text.example.id!r} is given up after {len(count)} tries ({death.reason})"


def run(
    where: Any,
    spec: RunSpec | None = None,
    means: Means | None = None,
    *,
    resume: bool = False,
    retry: bool = False,
) -> Status:
    """Explain a corpus; returns how it ended. With `resume` a run goes on that was stopped, however that happened;
    with `retry` what failed is tried again, by other means for instance."""
    place, means = place_of(where), means or Means()
    check_place(place)
    with owned(place):
        if isinstance(place, Local):
            place.sweep()
        header = header_of(place)
        spec, moved = agreed(place, spec, resume, header)
        if header is None and done_shards(place):
            raise InputError(f"{str(place)!r} has results but no plan: put plan/ back, or start in another folder.")
        if header is not None:
            environment_of(place)  # refuses where it is lost
        worker = None
        chosen = method_list(spec.methods)
        if header is not None and "data" in moved:
            check_data(place, spec, means, header)
        if header is None or "model" in moved or (not means.apart and means.ray is None):
            import torch

            torch.set_num_threads(means.threads)
            model = opened(place, spec, means, header)
            worker = Worker(place, spec, means, model)
            if header is None:  # not before the model could be opened: a mistyped name makes no run
                place.put("spec.json", spec.to_json().encode("utf-8", "surrogatepass"))  # names of files may be odd
                place.delete("environment.json")
            settle_environment(place, environment(worker.identity, means.threads, chosen))
        else:
            settle_environment(place, environment(None, means.threads, chosen))
            if looks_local(spec.model) and not Path(spec.model).expanduser().exists():
                raise ModelError(moved_advice(f"There is no model folder or file {spec.model!r}."))
        if header is not None and moved:  # what was found there is what the run was begun with
            place.put("spec.json", spec.to_json().encode("utf-8", "surrogatepass"))
        if header is None:
            assert worker is not None
            header = make_plan(place, spec, worker.model, means.data_dir)
        if retry:  # not before it is known that the run can go on
            retried(place)
        return driven(place, spec, means, header, worker)


def check_place(place: Place) -> None:
    """Refuse a folder with something else in it than a run, before anything is written there."""
    if isinstance(place, Local) and (around := run_around(place.root)) is not None:
        raise InputError(f"{str(place)!r} is inside of the run {str(around)!r}: name a folder outside of it.")
    if "spec.json" in place:
        spec_of(place)  # refuses where it is somebody else's
        return
    refuse_foreign(str(place), place.entries(), lambda name: name in OURS or name.endswith(".half"), "a run")


def check_data(place: Place, spec: RunSpec, means: Means, header: Header) -> None:
    """Refuse data that were moved, and are not those that the run was begun with."""
    if not header.fingerprint:
        raise InputError(
            f"{str(place)!r} was planned before raison kept a fingerprint of the data: leave the data away, they are "
            "in its plan."
        )
    if fingerprint_of(spec, means.data_dir) != header.fingerprint:
        raise InputError(
            f"{spec.data!r} holds other texts than {str(place)!r} was begun with: name the data that it was begun "
            "with, or start anew in another folder."
        )


def opened(place: Place, spec: RunSpec, means: Means, header: Header | None) -> Any:
    """The model of a run; where one that goes on has lost its model, the way out is told."""
    try:
        return load(spec.model, **means.opening)
    except ModelError as error:
        if header is None:
            raise
        raise ModelError(moved_advice(str(error))) from None


def moved_advice(reason: str) -> str:
    """A reason why the model of a run can't be opened, and what to do where it was moved."""
    return f"{reason.rstrip('.')}; where the model was moved, go on with --resume -m and its new place."


def agreed(place: Place, spec: RunSpec | None, resume: bool, header: Header | None) -> tuple[RunSpec, tuple[str, ...]]:
    """The spec of the run, and what of it lies somewhere else than before.

    It is the stored one, which a given one must equal but for where the model and the data lie, unless nothing was
    planned by it.
    """
    stored = None if place.get("spec.json") is None else spec_of(place)
    if stored is None and header is not None:
        raise InputError(f"spec.json of {str(place)!r} is missing: put it back, or start anew in another folder.")
    if stored is None or (header is None and spec is not None):
        if spec is None:
            raise InputError(f"{str(place)!r} is no run yet: give it a spec (a TOML file, or a model and data).")
        return spec, ()
    if not resume:
        raise InputError(f"{str(place)!r} holds a run already: go on with it (--resume), or choose another folder.")
    if spec is None:
        return stored, ()
    other = [name for name in vars(spec) if getattr(spec, name) != getattr(stored, name)]
    if wrong := [name for name in other if name not in ("model", "data")]:
        raise InputError(
            f"{str(place)!r} is a run with another {wrong[0]}: give its own spec, or choose another folder."
        )
    return spec, tuple(other)


def settle_environment(place: Place, now: dict[str, Any]) -> None:
    """A run is made by one model and one set of libraries: numbers of two would differ in their last digits."""
    data = place.get("environment.json")
    if data is None:
        place.put("environment.json", (json.dumps(now, indent=1) + "\n").encode())
        return
    before = environment_of(place)
    skipped = {"machine"} | {name for name, value in now.items() if value is None}  # None: workers will see
    if before.get("methods", now["methods"]) != now["methods"]:
        raise InputError(
            f"A file that a method of {str(place)!r} names is another one now, and its numbers would not fit together: "
            "put the old one back, or start anew in another folder."
        )
    skipped.add("methods")
    if other := [name for name in now if name not in skipped and before.get(name) != now[name]]:
        raise InputError(
            f"{str(place)!r} was begun with another {other[0]} ({before.get(other[0])}, now {now[other[0]]}), and its "
            "numbers would not fit together: use that one, or start anew in another folder."
        )


def driven(place: Place, spec: RunSpec, means: Means, header: Header, worker: Worker | None) -> Status:
    done = done_shards(place)
    sizes = dict(enumerate(header.sizes))
    if strange := sorted(done - set(sizes)):
        raise InputError(
            f"{str(place)!r} holds a shard {strange[0]}, and its plan has none of that number: `raison store repair` "
            "puts it aside."
        )
    queue = Queue(sorted(set(sizes) - done, key=lambda number: (-sizes[number], number)))
    files = homes(place)
    failed = sum(failures(place, name) for name in files)
    made = sum(explanations(place, name) for name in files)
    texts = sum(header.counts[number] for number in done)
    tally = Tally(place, header, len(done), texts, failed, made)
    tally.tell(always=True)
    if not queue.todo:
        return tally.end("done")
    try:
        if not means.apart and means.ray is None:
            assert worker is not None
            alone(worker, queue, tally)
        else:
            shared(executor_of(place, spec, means), place, queue, tally)
    except KeyboardInterrupt:
        tally.texts = sum(header.counts[number] for number in done_shards(place))  # some may not be told yet
        tally.end("stopped")
        raise Interrupted(
            f"Stopped after {tally.texts} of {header.texts} texts: `raison run --resume` goes on from there."
        ) from None
    except RaisonError:
        tally.end("failed")
        raise
    return tally.end("done")


def alone(worker: Worker, queue: Queue, tally: Tally) -> None:
    """All shards in this process, one after the other."""
    while queue.todo:
        number = queue.todo.pop(0)
        mark = lambda chunk, text, size, done, shard=number: tally.tell({shard: done})  # noqa: E731
        tally.add(worker.work(number, queue.careful.get(number, Careful()), mark))
        tally.tell()


def executor_of(place: Place, spec: RunSpec, means: Means) -> Executor:
    if means.ray is not None:
        from raison.runs.ray import RayExecutor

        return RayExecutor(place, spec, means)
    from raison.runs.pool import Pool

    return Pool(place, spec, means)


def shared(executor: Executor, place: Place, queue: Queue, tally: Tally) -> None:
    """Hand shards out as long as there are some; at most so many are under way as there is room for."""
    under = 0
    try:
        while queue.todo or under:
            while queue.todo and under < executor.room:
                number = queue.todo.pop(0)
                executor.submit(number, queue.careful.get(number, Careful()))
                under += 1
            for event in executor.events(0.5):
                if isinstance(event, str):
                    tally.notice(event)
                    continue
                under -= 1
                if isinstance(event, Done):
                    tally.add(event)
                else:
                    tally.notice(queue.learn(event, place))
            tally.tell(executor.under())
    finally:
        executor.close()
