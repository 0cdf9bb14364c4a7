"""The same plan on a Ray cluster: one model for each actor, shards to whoever is free, the driver may be killed.

The model goes through Ray's object store once and is taken from there by every actor. A tiny actor remembers what each
worker was about to do, so that after a death the driver knows which text was the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from raison.errors import MissingExtra, ModelError, RaisonError
from raison.runs.place import Unwritten, place_of
from raison.runs.spec import Means, RunSpec

__all__ = ["RayExecutor"]

STILLBORN = 4  # workers in a row, for each that may run, that end before they begin: it is not the texts


class Marks:
    """What every worker is about to do."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[int, int, int]] = {}

    def put(self, shard: int, chunk: int, text: int, done: int) -> None:
        self.places[shard] = (chunk, text, done)

    def all(self) -> dict[int, tuple[int, int, int]]:
        return self.places

    def drop(self, shard: int) -> None:
        self.places.pop(shard, None)


class Actor:
    """A worker with a model of its own."""

    def __init__(self, where: str, spec: RunSpec, means: Means, packed: Any, marks: Any):
        import os

        os.environ["OMP_NUM_THREADS"] = str(means.threads)
        import torch

        from raison.models.load import load
        from raison.runs.work import Worker

        torch.set_num_threads(means.threads)
        hf, tokenizer, name, heads = packed
        model = load(hf, tokenizer)
        model.name = name
        if heads:
            model.heads, model.offers = heads, model.offers | {"heads"}
        if means.gpus and torch.cuda.is_available():
            model.hf.to("cuda")
        self.worker = Worker(place_of(where), spec, means, model)
        self.marks = marks

    def identity(self) -> str:
        return str(self.worker.identity)

    def work(self, number: int, careful: dict[str, Any]) -> Any:
        from raison.runs.work import Careful

        try:
            mark = lambda chunk, text, size, done: self.marks.put.remote(number, chunk, text, done)  # noqa: E731
            return self.worker.work(number, Careful.of(careful), mark)
        except RaisonError as error:
            return ("unwritten" if isinstance(error, Unwritten) else "unable", str(error))


def said(error: Exception) -> str:
    """What Ray says, in a line without the colours of its terminal."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
    return (plain.splitlines() or [type(error).__name__])[0]


class RayExecutor:
    """Actors on a cluster, or on a Ray of its own on this machine."""

    def __init__(self, place: Any, spec: RunSpec, means: Means):
        try:
            import ray
        except ImportError:
            raise MissingExtra("ray", "ray", "A run on Ray") from None
        self.ray: Any = ray
        self.spec, self.means, self.where = spec, means, str(place)
        self.identity = json.loads(place.get("environment.json"))["model"]
        self.own = not ray.is_initialized()
        address = None if means.ray == "local" else means.ray
        try:
            if self.own:
                cores = means.workers * means.threads + 1
                more: dict[str, Any] = {"num_cpus": cores} if address is None else {}
                ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False, **more)
        except Exception as error:  # Ray has no one error for a cluster that can't be reached
            raise ModelError(f"Ray can't be reached at {means.ray!r} ({str(error).splitlines()[0]}).") from None
        if address is None and ray.cluster_resources().get("GPU", 0) < means.gpus * means.workers:
            raise ModelError("This machine has too few GPUs, and Ray would wait for more: leave --gpus away.")
        self.born_dead = 0  # workers in a row that ended before they began
        self.packed = ray.put(packed_model(spec, means))  # once, whatever the number of actors
        self.marks: Any = self.ray.remote(num_cpus=0)(Marks).remote()
        self.room = means.workers
        self.free = [self.actor() for _ in range(means.workers)]
        self.asked: dict[Any, tuple[Any, int]] = {}

    def actor(self) -> Any:
        remote = self.ray.remote(num_cpus=self.means.threads, num_gpus=self.means.gpus, max_restarts=0)(Actor)
        return remote.remote(self.where, self.spec, self.means, self.packed, self.marks)

    def submit(self, number: int, careful: Any) -> None:
        actor = self.free.pop(0)
        self.ray.get(self.marks.put.remote(number, -1, -1, 0))
        self.asked[actor.work.remote(number, careful.to_dict())] = (actor, number)

    def events(self, seconds: float) -> Iterator[Any]:
        from raison.runs.drive import Death

        ready, _ = self.ray.wait(list(self.asked), num_returns=1, timeout=seconds)
        for reference in ready:
            actor, number = self.asked.pop(reference)
            chunk, text, _ = self.ray.get(self.marks.all.remote())[number]
            self.marks.drop.remote(number)
            try:
                told = self.ray.get(reference)
            except self.ray.exceptions.RayActorError as error:
                self.born_dead += chunk < 0
                if self.born_dead > STILLBORN * self.room:
                    raise ModelError(f"Ray's workers end before they begin ({said(error)}).") from None
                self.free.append(self.actor())  # another one, where there is room
                yield Death(number, chunk, text, said(error), outside=True)
                continue
            except self.ray.exceptions.RayError as error:
                raise ModelError(f"Ray failed ({said(error)}).") from None
            if isinstance(told, tuple):
                raise (Unwritten if told[0] == "unwritten" else ModelError)(told[1])
            self.born_dead = 0
            self.free.append(actor)
            yield told

    def under(self) -> dict[int, int]:
        return {shard: done for shard, (_, _, done) in self.ray.get(self.marks.all.remote()).items()}

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()


def packed_model(spec: RunSpec, means: Means) -> Any:
    """What an actor needs to make the model again."""
    from raison.models.load import load

    model = load(spec.model, **means.opening)
    return model.hf, model.tokenizer, model.name, getattr(model, "heads", None)
