"""Ray's actors: workers with their models, and one that keeps the marks of what each was about to do."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from raison.core.errors import ModelError, RaisonError
from raison.runs.executor import Careful, Ready, Refusal, ShardDone, WorkPosition
from raison.runs.run_spec import Means, RunSpec
from raison.runs.storage import place_of

__all__ = ["PackedModel", "WorkMarks", "WorkerActor", "packed_model"]


class PackedModel(NamedTuple):
    """What an actor needs to make the model again."""

    transformer: Any  # of transformers
    tokenizer: Any
    name: str
    head_statistics: str | None


class WorkMarks:
    """What every worker is about to do, by the number of its errand."""

    def __init__(self) -> None:
        self.positions: dict[int, WorkPosition] = {}

    def put(self, errand: int, position: WorkPosition) -> None:
        self.positions[errand] = position

    def all(self) -> dict[int, WorkPosition]:
        return self.positions

    def drop(self, errand: int) -> None:
        self.positions.pop(errand, None)


class WorkerActor:
    """A worker with a model of its own."""

    def __init__(self, where: str, spec: RunSpec, means: Means, packed: PackedModel, marks: Any):
        os.environ["OMP_NUM_THREADS"] = str(means.threads)
        import torch

        from raison.runs.worker import (
            Worker,
        )  # late, as torch: they read the environment when they are imported

        torch.set_num_threads(means.threads)
        self.marks = marks  # a handle of Ray
        self.refusal: Refusal | None = None
        try:
            self.worker = Worker(place_of(where), spec, means, unpacked_model_of_ray(packed, means))
        except RaisonError as error:
            self.refusal = Refusal.of(error)

    def open(self) -> Ready | Refusal:
        """Whether it has its model, and which; it was opened when the actor was made."""
        return self.refusal or Ready(self.worker.identity)

    def work(self, errand: int, shard: int, careful: Careful) -> ShardDone | Refusal:
        """Do a shard."""

        def report_position(position: WorkPosition) -> None:
            self.marks.put.remote(errand, position)

        try:
            return self.worker.work(shard, careful, report_position)
        except RaisonError as error:
            return Refusal.of(error)


def packed_model(spec: RunSpec, means: Means, identity: str | None) -> PackedModel:
    """The model of a run for Ray's store; refused where it is not the model that the run was begun with."""
    from raison.models.load import load
    from raison.runs.identity import model_identity

    model = load(spec.model, **means.load_options)
    if model_identity(model) != identity:
        raise ModelError(f"{spec.model!r} is another model than the run was begun with.")
    return PackedModel(model.hf, model.tokenizer, model.name, model.head_statistics)


def unpacked_model_of_ray(packed: PackedModel, means: Means) -> Any:
    """The model again, on a GPU where there is one for it."""
    import torch

    from raison.models.load import load

    model = load(packed.transformer, packed.tokenizer)
    model.name = packed.name
    if packed.head_statistics:
        model.head_statistics = packed.head_statistics
        model.offers = model.offers | {"heads"}
    if means.gpus and torch.cuda.is_available():
        model.hf.to("cuda")
    return model
