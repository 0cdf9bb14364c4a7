"""The executor on a Ray cluster: one model for each actor, shards to whoever is free, any process may be killed.

The model goes through Ray's object store once and is taken from there by every actor. A shard is handed only to an
actor that has opened its model: one that died is replaced wherever there is room, and where there is none the others go
on without it. A tiny actor of its own remembers what each worker was about to do, so that after a death the driver
knows which text was the last; when that one dies, it begins anew and the driver knows less for a moment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeAlias

from raison.core.errors import MissingExtra, ModelError
from raison.runs.executor import Careful, Death, Event, Ready, Refusal, ShardDone, WorkPosition
from raison.runs.ray_actors import PackedModel, WorkerActor, WorkMarks, packed_model
from raison.runs.run_spec import Means, RunSpec
from raison.runs.storage import Place

__all__ = ["RayExecutor"]

# workers in a row, for each that may run, that end before any has begun: it is not the texts
STILLBORN = 4
LOOK = 2.0  # seconds between two looks at whether the driver's own node is there
ANSWER = 5.0  # seconds that the actor of marks has for an answer
PATIENCE = 60.0  # seconds without a worker after which it is told
LONGEST = 30.0  # seconds of the longest pause before a worker is started again

COLOURS = re.compile(r"\x1b\[[0-9;]*m")

Handle: TypeAlias = Any  # of an actor; Ray's methods on it exist only while it runs
Promise: TypeAlias = Any  # of an answer that is to come


@dataclass(frozen=True)
class Errand:
    """A shard that an actor was sent to do."""

    actor: Handle
    number: int  # of the errand, by which the actor of marks knows it
    shard: int


class RayExecutor:
    """Actors on a cluster, or on a Ray of its own on this machine."""

    def __init__(self, place: Place, spec: RunSpec, means: Means, *, identity: str | None):
        self.ray = import_ray()
        self.spec, self.means, self.where, self.identity = spec, means, str(place), identity
        packed = packed_model(spec, means, identity)
        self.owns_ray = not self.ray.is_initialized()
        self.connect()
        self.node = self.ray.get_runtime_context().get_node_id()
        self.node_seen = self.worker_seen = time.monotonic()
        self.room = means.workers
        self.packed: PackedModel = self.ray.put(packed)  # once, whatever the number of actors
        # no work is lost with it, so it is begun anew however often it dies
        self.marks: Handle = self.ray.remote(num_cpus=0, max_restarts=-1)(WorkMarks).remote()
        self.errands_sent = 0
        self.waiting: list[tuple[int, Careful]] = []
        self.free: list[Handle] = []
        self.errands: dict[Promise, Errand] = {}
        self.opening: dict[Promise, Handle] = {}  # actors that open their model
        self.starts: list[float] = []  # when actors are to be started
        self.died_in_a_row = 0  # workers that ended without a word of what they did
        self.begun = False  # one has opened the model in this session
        for _ in range(means.workers):
            self.start()

    def connect(self) -> None:
        """Begin to speak with a cluster, or start one."""
        address = None if self.means.ray == "local" else self.means.ray
        cores = self.means.workers * self.means.threads + 1 if address is None else None
        try:
            if self.owns_ray:
                self.ray.init(
                    address=address,
                    num_cpus=cores,
                    log_to_driver=False,
                    include_dashboard=False,
                    configure_logging=False,
                )
        except Exception as error:  # Ray has no one error for a cluster that can't be reached
            raise ModelError(
                f"Ray can't be reached at {self.means.ray!r} ({ray_error_in_one_line(error)})."
            ) from None
        gpus = self.ray.cluster_resources().get("GPU", 0)
        if address is None and gpus < self.means.gpus * self.means.workers:
            raise ModelError(
                "This machine has too few GPUs, and Ray would wait for more: leave --gpus away."
            )

    # -- actors ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Have another actor open its model, where and when there is room."""
        remote = self.ray.remote(
            num_cpus=self.means.threads, num_gpus=self.means.gpus, max_restarts=0
        )(WorkerActor)
        actor = remote.remote(self.where, self.spec, self.means, self.packed, self.marks)
        self.opening[actor.open.remote()] = actor

    def replace(self, reason: str) -> None:
        """Another actor in the place of one that ended; after many in a row with a pause before it."""
        over = self.died_in_a_row - STILLBORN * self.room
        if over > 0 and not self.begun:
            raise ModelError(f"Ray's workers end before they begin ({reason}).")
        pause = min(LONGEST, 2.0 ** min(over, 10)) if over > 0 else 0.0
        self.starts.append(time.monotonic() + pause)

    def submit(self, shard: int, careful: Careful) -> None:
        self.waiting.append((shard, careful))
        self.assign()

    def assign(self) -> None:
        """Start the actors whose time has come, and give shards to those that are free."""
        now = time.monotonic()
        due = [start for start in self.starts if start <= now]
        self.starts = [start for start in self.starts if start > now]
        for _ in due:
            self.start()
        while self.waiting and self.free:
            actor = self.free.pop(0)
            shard, careful = self.waiting.pop(0)
            self.errands_sent += 1
            answer = actor.work.remote(self.errands_sent, shard, careful)
            self.errands[answer] = Errand(actor, self.errands_sent, shard)

    # -- what happens ---------------------------------------------------------------------------------------

    def events(self, seconds: float) -> Iterator[Event]:
        """What has happened within so many seconds."""
        self.assign()
        promises = [*self.errands, *self.opening]
        ready: list[Promise] = []
        if promises:
            ready, _ = self.ray.wait(promises, num_returns=1, timeout=seconds)
        else:  # all that are missing have a pause
            time.sleep(seconds)
        for answer in ready:
            if answer in self.opening:
                self.welcome(answer)
            else:
                yield self.outcome(answer)
        self.check_node()
        if self.errands or self.free:
            self.worker_seen = time.monotonic()
        elif time.monotonic() - self.worker_seen > PATIENCE:
            self.worker_seen = time.monotonic()
            yield f"Ray has had no worker for {PATIENCE:.0f} seconds: the run waits until there is room for one"
        self.assign()

    def welcome(self, answer: Promise) -> None:
        """An actor has its model, or has ended before."""
        actor = self.opening.pop(answer)
        try:
            message: Ready | Refusal = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            self.check_error(error)
            self.ray.kill(actor)  # where it is not dead, its place is another's now
            self.died_in_a_row += 1
            self.replace(ray_error_in_one_line(error))
            return
        if isinstance(message, Refusal):
            raise ModelError(message.reason)
        if message.identity != self.identity:
            raise ModelError(f"{self.spec.model!r} is another model than the run was begun with.")
        self.begun = True
        self.free.append(actor)

    def outcome(self, answer: Promise) -> ShardDone | Death:
        """What became of a shard."""
        errand = self.errands.pop(answer)
        try:
            message: ShardDone | Refusal = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:  # killed, out of memory, its node lost
            self.check_error(error)
            self.ray.kill(errand.actor)
            position = self.positions().get(errand.number, WorkPosition())
            self.died_in_a_row = self.died_in_a_row + 1 if position.chunk < 0 else 0
            self.replace(ray_error_in_one_line(error))
            return Death(
                errand.shard,
                position.chunk,
                position.text,
                ray_error_in_one_line(error),
                outside=True,
            )
        finally:
            self.marks.drop.remote(errand.number)
        if isinstance(message, Refusal):
            raise message.error()
        self.died_in_a_row = 0
        self.free.append(errand.actor)
        return message

    def check_error(self, error: Exception) -> None:
        """Raise what no other worker can mend: a mistake in the code, or the loss of the driver's own node."""
        if isinstance(error, self.ray.exceptions.RayTaskError):
            raise ModelError(f"Ray failed ({ray_error_in_one_line(error)}).") from None
        self.check_node(now=True)

    def check_node(self, *, now: bool = False) -> None:
        """End where the node that the driver belongs to is lost: from there nothing can be asked any more."""
        if not now and time.monotonic() - self.node_seen < LOOK:
            return
        self.node_seen = time.monotonic()
        if any(node["NodeID"] == self.node and not node["Alive"] for node in self.ray.nodes()):
            raise ModelError(
                "Ray has lost the node of the driver (its raylet ended); what is done is kept, and "
                "`raison run --resume` goes on from there."
            )

    def positions(self) -> dict[int, WorkPosition]:
        """What the workers are about to do, by errand; nothing where nobody can say so at the moment."""
        try:
            positions: dict[int, WorkPosition] = self.ray.get(
                self.marks.all.remote(), timeout=ANSWER
            )
        except self.ray.exceptions.RayError:  # it is being begun anew
            return {}
        return positions

    def texts_under_way(self) -> dict[int, int]:
        positions = self.positions()
        return {
            errand.shard: positions.get(errand.number, WorkPosition()).done
            for errand in self.errands.values()
        }

    def close(self) -> None:
        if self.owns_ray:
            self.ray.shutdown()
            return
        working = [errand.actor for errand in self.errands.values()]
        for actor in (*self.free, *self.opening.values(), *working, self.marks):
            self.ray.kill(actor)


def import_ray() -> ModuleType:
    """Ray, which is an extra."""
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray", "A run on Ray") from None
    return ray


def ray_error_in_one_line(error: Exception) -> str:
    """What Ray says, in a line without the colours of its terminal."""
    plain = COLOURS.sub("", str(error)).strip()
    return (plain.splitlines() or [type(error).__name__])[0].rstrip(".")
