"""Parts of a suite that are done, as files: a suite that was stopped goes on from there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.models.protocol import Model
from raison.studies.reproduce.suite import Run, Suite

__all__ = ["PART", "PartStore", "sampled_weights"]

# a part that is done, or one that is being written
PART = re.compile(r".+\.[0-9a-f]{12}\.(json|\d+\.half)")
SAMPLED = 64  # numbers of each weight that tell a model from another


def say_nothing(sentence: str) -> None:
    """Nobody is told what is being done."""


@dataclass(frozen=True)
class PartStore:
    """The parts of one run; a file's name is one for people, and a hash of everything that was asked."""

    folder: Path | None  # None: nothing is stored
    suite: Suite
    run: Run
    weights: str = ""  # of the model: one that was trained again under the same name is another
    step: Callable[[str], None] = say_nothing

    def get(self, about: str, request: Mapping[str, Any], evaluate: Callable[[], Evaluation]) -> Evaluation:
        """The part that is stored, or evaluated and stored now."""
        self.step(f"{self.suite.name}: {self.run.name}, {about}")
        if self.folder is None:
            return evaluate()
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / self.file_name(about, request)
        # not there, torn, or something else (a UnicodeDecodeError is a ValueError): made again
        with contextlib.suppress(OSError, InputError, ValueError):
            return Evaluation.from_json(file.read_text(encoding="utf-8"))

        evaluation = evaluate()
        half = file.with_suffix(f".{os.getpid()}.half")  # somebody else may fill the same folder
        half.write_text(evaluation.to_json() + "\n", encoding="utf-8")
        half.replace(file)
        return evaluation

    def file_name(self, about: str, request: Mapping[str, Any]) -> str:
        """What says of which part of which run the file is."""
        # the paper's values, the remarks and the recipe change no number
        run = asdict(self.run) | {"paper": None, "about": None, "recipe": None, "weights": self.weights}
        text = json.dumps([run, dict(request)], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.suite.name}.{self.run.name}.{about}.{digest}.json".replace(" ", "-")


def sampled_weights(model: Model) -> str:
    """A hash of some numbers of every weight: training moves them all, so a few of each tell two models apart."""
    digest = hashlib.sha256()
    hf = getattr(model, "hf", None)
    weights = {} if hf is None else hf.state_dict()
    for name, weight in weights.items():
        flat = weight.detach().reshape(-1)
        sample = flat[:: max(1, len(flat) // SAMPLED)][:SAMPLED]
        digest.update(f"{name} {tuple(weight.shape)} ".encode())
        digest.update(sample.cpu().double().numpy().tobytes())
    return digest.hexdigest()[:12]
