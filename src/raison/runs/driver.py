"""`run`: starts or resumes a run; writes its spec and plan, hands its shards to workers, and says how far it is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from raison.api import load
from raison.core.errors import InputError, ModelError, RaisonError
from raison.models.load import looks_local
from raison.models.protocol import Model
from raison.runs.executor import Executor, ShardDone, WorkPosition
from raison.runs.identity import ENVIRONMENT, Environment, stored_environment
from raison.runs.maintenance import put_failures_aside
from raison.runs.plan import Header, plan_header_of
from raison.runs.planner import make_plan
from raison.runs.pool import Pool
from raison.runs.queue import ShardQueue
from raison.runs.ray import RayExecutor
from raison.runs.resume_checks import (
    AgreedSpec,
    agree_on_environment,
    agree_on_spec,
    check_data,
    check_place_to_resume,
)
from raison.runs.run_lock import driver_lock
from raison.runs.run_spec import Means, RunSpec
from raison.runs.status import Status, Tally
from raison.runs.storage import Local, Place, place_of
from raison.runs.store import count_failures, count_stored_explanations, done_shards, shards_by_file
from raison.runs.worker import Worker
from raison.studies.method_lists import method_list

__all__ = ["RunInterrupted", "do_shards_alone", "run"]

LOOK = 0.5  # seconds between two looks at what workers have done


class RunInterrupted(RaisonError):
    """Somebody pressed Ctrl-C: what is done is kept."""

    exit_code = 130


def run(
    where: str | os.PathLike[str],
    spec: RunSpec | None = None,
    means: Means | None = None,
    *,
    resume: bool = False,
    retry: bool = False,
) -> Status:
    """Explain a corpus; returns how it ended. With `resume` a run goes on that was stopped, however that happened;
    with `retry` what failed is tried again, by other means for instance."""
    place = place_of(where)
    means = means or Means()
    check_place_to_resume(place)
    with driver_lock(place):
        if isinstance(place, Local):
            place.remove_half_written()
        header = plan_header_of(place)
        agreed = agree_on_spec(place, spec, resume=resume, header=header)
        if header is None:
            if done_shards(place):
                raise InputError(
                    f"{str(place)!r} has results but no plan: put plan/ back, or start in another folder."
                )
            prepared = plan_new_run(place, agreed.spec, means)
        else:
            prepared = PlannedRun(header, check_planned_run(place, agreed, means, header))
        if retry:  # not before it is known that the run can go on
            put_failures_aside(place)
        return do_open_shards(place, agreed.spec, means, prepared)


# -- before the first shard -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlannedRun:
    """A run that is planned."""

    header: Header
    worker: Worker | None  # of this process, where one was needed


def plan_new_run(place: Place, spec: RunSpec, means: Means) -> PlannedRun:
    """Plan a run, which needs its model."""
    worker = open_worker(place, spec, means, load(spec.model, **means.load_options))
    write_spec(place, spec)  # not before the model could be opened: a mistyped name makes no run
    place.delete(ENVIRONMENT)
    agree_on_environment(place, Environment.here(worker.identity, means.threads, worker.methods))
    return PlannedRun(make_plan(place, spec, worker.model, means.data_dir), worker)


def check_planned_run(
    place: Place, agreed: AgreedSpec, means: Means, header: Header
) -> Worker | None:
    """Make sure that a planned run can go on; the worker of this process, where one is needed."""
    spec = agreed.spec
    stored_environment(place)  # refuses where it is lost
    methods = method_list(spec.methods)
    if "data" in agreed.moved:
        check_data(place, spec, means, header)
    worker = None
    if "model" in agreed.moved or means.in_this_process:
        worker = open_worker(place, spec, means, model_of_planned_run(spec, means))
        agree_on_environment(place, Environment.here(worker.identity, means.threads, methods))
    else:
        agree_on_environment(place, Environment.here(None, means.threads, methods))
        if looks_local(spec.model) and not Path(spec.model).expanduser().exists():
            raise ModelError(
                reason_with_way_out(f"There is no model folder or file {spec.model!r}.")
            )
    if agreed.moved:  # what was found there is what the run was begun with
        write_spec(place, spec)
    return worker


def open_worker(place: Place, spec: RunSpec, means: Means, model: Model) -> Worker:
    """A worker in this process."""
    import torch

    torch.set_num_threads(means.threads)
    return Worker(place, spec, means, model)


def write_spec(place: Place, spec: RunSpec) -> None:
    place.put(
        "spec.json", spec.to_json().encode("utf-8", "surrogatepass")
    )  # names of files may be odd


def model_of_planned_run(spec: RunSpec, means: Means) -> Model:
    """The model of a run that goes on; where it is lost, the way out is told."""
    try:
        model: Model = load(spec.model, **means.load_options)
        return model
    except ModelError as error:
        raise ModelError(reason_with_way_out(str(error))) from None


def reason_with_way_out(reason: str) -> str:
    """A reason why the model of a run can't be opened, and what to do where it was moved."""
    return f"{reason.rstrip('.')}; where the model was moved, go on with --resume -m and its new place."


# -- the shards -----------------------------------------------------------------------------------------------


def do_open_shards(place: Place, spec: RunSpec, means: Means, prepared: PlannedRun) -> Status:
    """Have all shards done that are not there yet."""
    header = prepared.header
    done = done_shards(place)
    strange = sorted(number for number in done if number >= header.shards)
    if strange:
        raise InputError(
            f"{str(place)!r} holds a shard {strange[0]}, and its plan has none of that number: `raison store repair` "
            "puts it aside."
        )
    missing = [number for number in range(header.shards) if number not in done]
    queue = ShardQueue(
        sorted(missing, key=lambda number: (-header.sizes[number], number))
    )  # the longest first
    tally = tally_of_run(place, header, done)
    tally.tell(always=True)
    if not queue.shards:
        return tally.end("done")
    try:
        if means.in_this_process and prepared.worker is not None:
            do_shards_alone(prepared.worker, queue, tally)
        else:
            hand_out_shards(executor_of_shards(place, spec, means), place, queue, tally)
    except KeyboardInterrupt:
        tally.texts = header.texts_in(done_shards(place))  # some may not be told yet
        tally.end("stopped")
        raise RunInterrupted(
            f"Stopped after {tally.texts} of {header.texts} texts: `raison run --resume` goes on from there."
        ) from None
    except RaisonError:
        tally.end("failed")
        raise
    return tally.end("done")


def tally_of_run(place: Place, header: Header, done: set[int]) -> Tally:
    """A tally that knows what earlier sessions have done."""
    files = shards_by_file(place)
    return Tally(
        place,
        header,
        shards=len(done),
        texts=header.texts_in(done),
        failed=sum(count_failures(place, name) for name in files),
        explanations=sum(count_stored_explanations(place, name) for name in files),
    )


def do_shards_alone(worker: Worker, queue: ShardQueue, tally: Tally) -> None:
    """Do all shards in this process, one after the other."""

    def tell_position(shard: int, position: WorkPosition) -> None:
        tally.tell({shard: position.done})

    while queue.shards:
        shard, careful = queue.next()
        tally.add(worker.work(shard, careful, partial(tell_position, shard)))
        tally.tell()


def executor_of_shards(place: Place, spec: RunSpec, means: Means) -> Executor:
    """Who does the shards."""
    identity = stored_environment(place).model
    if means.ray is not None:
        return RayExecutor(place, spec, means, identity=identity)
    return Pool(place, spec, means, identity=identity)


def hand_out_shards(executor: Executor, place: Place, queue: ShardQueue, tally: Tally) -> None:
    """Hand shards out as long as there are some; at most so many are under way as there is room for."""
    under_way = 0
    try:
        while queue.shards or under_way:
            while queue.shards and under_way < executor.room:
                executor.submit(*queue.next())
                under_way += 1
            for event in executor.events(LOOK):
                if isinstance(event, str):
                    tally.notice(event)
                    continue
                under_way -= 1
                if isinstance(event, ShardDone):
                    tally.add(event)
                else:
                    tally.notice(queue.learn(event, place))
            tally.tell(executor.texts_under_way())
    finally:
        executor.close()
