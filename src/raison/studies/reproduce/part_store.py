"""A store of the parts of a suite that are done, as files: a suite that was stopped goes on from there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.evaluation import Evaluation
from raison.core.files import write_whole
from raison.models.protocol import Model
from raison.models.weight_fingerprint import fingerprint_of_weights
from raison.studies.reproduce.suite import Suite, SuiteRun

__all__ = ["PART", "PartStore", "weights_fingerprint_for_suite"]

PART = re.compile(r".+\.[0-9a-f]{12}\.json")  # a part that is done


def say_nothing(sentence: str) -> None:
    """Nobody is told what is being done."""


@dataclass(frozen=True)
class PartStore:
    """The parts of one run; a file's name is one for people, and a hash of everything that was asked."""

    folder: Path | None  # None: nothing is stored
    suite: Suite
    run: SuiteRun
    weights: str = ""  # of the model: one that was trained again under the same name is another
    step: Callable[[str], None] = say_nothing

    def get(
        self, about: str, request: Mapping[str, Any], evaluate: Callable[[], Evaluation]
    ) -> Evaluation:
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
        with write_whole(file) as half:  # somebody else may fill the same folder
            half.write_text(evaluation.to_json() + "\n", encoding="utf-8")
        return evaluation

    def file_name(self, about: str, request: Mapping[str, Any]) -> str:
        """What says of which part of which run the file is."""
        # the paper's values, the remarks and the recipe change no number
        run = asdict(self.run) | {
            "paper": None,
            "about": None,
            "recipe": None,
            "weights": self.weights,
        }
        text = json.dumps([run, dict(request)], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        name = f"{self.suite.name}.{self.run.name}.{about}.{digest}.json"
        return name.replace(" ", "-")


def weights_fingerprint_for_suite(model: Model) -> str:
    """The fingerprint of a model's weights; "" where it has none that can be read."""
    hf = getattr(model, "hf", None)
    if hf is None:
        return ""
    return fingerprint_of_weights(hf.state_dict().items())
