"""The same plan on a Ray cluster: one model for each actor, shards to whoever is free, any process may be killed.

The model goes through Ray's object store once and is taken from there by every actor. A shard is handed only to an
actor that has opened its model: one that died is replaced wherever there is room, and where there is none the others go
on without it. A tiny actor of its own remembers what each worker was about to do, so that after a death the driver
knows which text was the last; when that one dies, it begins anew and the driver knows less for a moment.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from raison.core import limits
from raison.core.errors import MissingExtra, ModelError, RaisonError
from raison.runs.spec import Means, RunSpec
from raison.runs.storage import Unwritten, place_of

__all__ = ["RayExecutor"]

STILLBORN = 4  # workers in a row, for each that may run, that end before any has begun: it is not the texts
LOOK = 2.0  # seconds between two looks at whether the driver's own node is there
ANSWER = 5.0  # seconds that the actor of marks has for an answer
PATIENCE = 60.0  # seconds without a worker after which it is told
LONGEST = 30.0  # seconds of the longest pause before a worker is started again

Mark = tuple[int, int, int]  # chunk, text, texts that are done before; -1: none yet
NOWHERE: Mark = (-1, -1, 0)


class Marks:
    """What every worker is about to do, by the number of its errand."""

    def __init__(self) -> None:
        self.places: dict[int, Mark] = {}

    def put(self, errand: int, chunk: int, text: int, done: int) -> None:
        self.places[errand] = (chunk, text, done)

    def all(self) -> dict[int, Mark]:
        return self.places

    def drop(self, errand: int) -> None:
        self.places.pop(errand, None)


class Actor:
    """A worker with a model of its own."""

    def __init__(self, where: str, spec: RunSpec, means: Means, packed: Any, marks: Any):
        import os

        os.environ["OMP_NUM_THREADS"] = str(means.threads)
        import torch

        from raison.runs.worker import Worker

        torch.set_num_threads(means.threads)
        self.marks = marks
        self.unable = ""
        try:
            self.worker = Worker(place_of(where), spec, means, unpacked_model(packed, means))
        except RaisonError as error:
            self.unable = str(error)

    def identity(self) -> tuple[str, str]:
        """That of its model; or why it has none."""
        return ("unable", self.unable) if self.unable else ("ready", str(self.worker.identity))

    def work(self, errand: int, number: int, careful: dict[str, Any]) -> Any:
        from raison.runs.worker import Careful

        def mark(chunk: int, text: int, size: int, done: int) -> None:
            self.marks.put.remote(errand, chunk, text, done)

        try:
            return self.worker.work(number, Careful.of(careful), mark)
        except RaisonError as error:
            return ("unwritten" if isinstance(error, Unwritten) else "unable", str(error))


def said(error: Exception) -> str:
    """What Ray says, in a line without the colours of its terminal."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return (plain.splitlines() or [type(error).__name__])[0].rstrip(".")


class RayExecutor:
    """Actors on a cluster, or on a Ray of its own on this machine."""

    def __init__(self, place: Any, spec: RunSpec, means: Means):
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray", "A run on Ray") from None
        self.ray: Any = ray
        self.spec, self.means, self.where = spec, means, str(place)
        self.identity = limits.from_json(place.get("environment.json"))["model"]
        packed = packed_model(spec, means, self.identity)
        self.own = not ray.is_initialized()
        self.connect()
        self.node = ray.get_runtime_context().get_node_id()
        self.looked = self.seen = time.monotonic()  # at the driver's node; a worker
        self.room = means.workers
        self.packed = ray.put(packed)  # once, whatever the number of actors
        # no work is lost with it, so it is begun anew however often it dies
        self.marks: Any = ray.remote(num_cpus=0, max_restarts=-1)(Marks).remote()
        self.errands = 0
        self.waiting: list[tuple[int, Any]] = []
        self.free: list[Any] = []
        self.asked: dict[Any, tuple[Any, int, int]] = {}  # answer to come -> actor, errand, shard
        self.opening: dict[Any, Any] = {}  # answer to come -> actor that opens its model
        self.missing: list[float] = []  # when actors are to be started
        self.ended = 0  # workers in a row that ended without a word of what they did
        self.begun = False  # one has opened the model in this session
        for _ in range(means.workers):
            self.start()

    def connect(self) -> None:
        """Begin to speak with a cluster, or start one."""
        ray, means = self.ray, self.means
        address = None if means.ray == "local" else means.ray
        try:
            if self.own:
                cores = means.workers * means.threads + 1
                more: dict[str, Any] = {"num_cpus": cores} if address is None else {}
                ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False, **more)
        except Exception as error:  # Ray has no one error for a cluster that can't be reached
            raise ModelError(f"Ray can't be reached at {means.ray!r} ({said(error)}).") from None
        if address is None and ray.cluster_resources().get("GPU", 0) < means.gpus * means.workers:
            raise ModelError("This machine has too few GPUs, and Ray would wait for more: leave --gpus away.")

    def start(self) -> None:
        """Have another actor open its model, where and when there is room."""
        remote = self.ray.remote(num_cpus=self.means.threads, num_gpus=self.means.gpus, max_restarts=0)(Actor)
        actor = remote.remote(self.where, self.spec, self.means, self.packed, self.marks)
        self.opening[actor.identity.remote()] = actor

    def replace(self, reason: str) -> None:
        """Another actor in the place of one that ended; after many in a row with a pause before it."""
        over = self.ended - STILLBORN * self.room
        if over > 0 and not self.begun:
            raise ModelError(f"Ray's workers end before they begin ({reason}).")
        pause = min(LONGEST, 2.0 ** min(over, 10)) if over > 0 else 0.0
        self.missing.append(time.monotonic() + pause)

    def submit(self, number: int, careful: Any) -> None:
        self.waiting.append((number, careful))
        self.assign()

    def assign(self) -> None:
        """Start the actors whose time has come, and give shards to those that are free."""
        now = time.monotonic()
        for _ in [when for when in self.missing if when <= now]:
            self.start()
        self.missing = [when for when in self.missing if when > now]
        while self.waiting and self.free:
            actor, (number, careful) = self.free.pop(0), self.waiting.pop(0)
            self.errands += 1
            answer = actor.work.remote(self.errands, number, careful.to_dict())
            self.asked[answer] = (actor, self.errands, number)

    def events(self, seconds: float) -> Iterator[Any]:
        """What has happened within so many seconds."""
        self.assign()
        answers = [*self.asked, *self.opening]
        if answers:
            ready, _ = self.ray.wait(answers, num_returns=1, timeout=seconds)
        else:  # all that are missing have a pause
            time.sleep(seconds)
            ready = []
        for answer in ready:
            if answer in self.opening:
                self.opened(answer)
            else:
                yield self.answered(answer)
        self.look()
        if self.asked or self.free:
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen > PATIENCE:
            self.seen = time.monotonic()
            yield f"Ray has had no worker for {PATIENCE:.0f} seconds: the run waits until there is room for one"
        self.assign()

    def opened(self, answer: Any) -> None:
        """An actor has its model, or has ended before."""
        actor = self.opening.pop(answer)
        try:
            kind, told = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:
            self.check(error)
            self.ray.kill(actor)  # where it is not dead, its place is another's now
            self.ended += 1
            self.replace(said(error))
            return
        if kind == "unable":
            raise ModelError(told)
        if told != self.identity:
            raise ModelError(another(self.spec))
        self.begun = True
        self.free.append(actor)

    def answered(self, answer: Any) -> Any:
        """What became of a shard."""
        from raison.runs.driver import Death

        actor, errand, number = self.asked.pop(answer)
        try:
            told = self.ray.get(answer)
        except self.ray.exceptions.RayError as error:  # killed, out of memory, its node lost
            self.check(error)
            self.ray.kill(actor)
            places = self.places()
            chunk, text, _ = NOWHERE if places is None else places.get(errand, NOWHERE)
            self.ended = self.ended + 1 if chunk < 0 else 0
            self.replace(said(error))
            return Death(number, chunk, text, said(error), outside=True)
        finally:
            self.marks.drop.remote(errand)
        if isinstance(told, tuple):
            raise (Unwritten if told[0] == "unwritten" else ModelError)(told[1])
        self.ended = 0
        self.free.append(actor)
        return told

    def check(self, error: Exception) -> None:
        """Raise what no other worker can mend: a mistake in the code, or the loss of the driver's own node."""
        if isinstance(error, self.ray.exceptions.RayTaskError):
            raise ModelError(f"Ray failed ({said(error)}).") from None
        self.look(now=True)

    def look(self, now: bool = False) -> None:
        """End where the node that the driver belongs to is lost: from there nothing can be asked any more."""
        if not now and time.monotonic() - self.looked < LOOK:
            return
        self.looked = time.monotonic()
        if any(node["NodeID"] == self.node and not node["Alive"] for node in self.ray.nodes()):
            raise ModelError(
                "Ray has lost the node of the driver (its raylet ended); what is done is kept, and "
                "`raison run --resume` goes on from there."
            )

    def places(self) -> dict[int, Mark] | None:
        """What the workers are about to do; None where nobody can say so at the moment."""
        try:
            found: dict[int, Mark] = self.ray.get(self.marks.all.remote(), timeout=ANSWER)
        except self.ray.exceptions.RayError:  # it is being begun anew
            return None
        return found

    def under(self) -> dict[int, int]:
        places = self.places() or {}
        return {number: places.get(errand, NOWHERE)[2] for _, errand, number in self.asked.values()}

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()
            return
        for actor in (*self.free, *self.opening.values(), *(each[0] for each in self.asked.values()), self.marks):
            self.ray.kill(actor)


def another(spec: RunSpec) -> str:
    return f"{spec.model!r} is another model than the run was begun with."


def packed_model(spec: RunSpec, means: Means, identity: str) -> Any:
    """What an actor needs to make the model again; refused where it is not the model of the run."""
    from raison.models.load import load
    from raison.runs.identity import model_identity

    model = load(spec.model, **means.opening)
    if model_identity(model) != identity:
        raise ModelError(another(spec))
    return model.hf, model.tokenizer, model.name, model.head_statistics


def unpacked_model(packed: Any, means: Means) -> Any:
    """The model again, on a GPU where there is one for it."""
    import torch

    from raison.models.load import load

    hf, tokenizer, name, heads = packed
    model: Any = load(hf, tokenizer)
    model.name = name
    if heads:
        model.head_statistics, model.offers = heads, model.offers | {"heads"}
    if means.gpus and torch.cuda.is_available():
        model.hf.to("cuda")
    return model
