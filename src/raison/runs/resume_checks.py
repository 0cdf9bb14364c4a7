"""Checks before a run is resumed: its folder, spec, data, model and libraries must agree with its beginning."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from raison.core.errors import InputError
from raison.core.outputs import refuse_foreign_files, run_folder_around
from raison.runs.identity import ENVIRONMENT, Environment, stored_environment
from raison.runs.plan import Header
from raison.runs.planner import fingerprint_of_corpus
from raison.runs.run_spec import Means, RunSpec
from raison.runs.storage import Local, Place
from raison.runs.store import spec_of_run

__all__ = [
    "AgreedSpec",
    "agree_on_environment",
    "agree_on_spec",
    "check_data",
    "check_place_to_resume",
]

# what is in the folder of a run
OURS = {
    "spec.json", "environment.json", "status.json", "lock", "plan", "shards", "costs", "export", "damaged", "retried",
}  # fmt: skip
MOVABLE = ("model", "data")  # they may lie somewhere else than before


def check_place_to_resume(place: Place) -> None:
    """Refuse a folder with something else in it than a run, before anything is written there."""
    around = run_folder_around(place.root) if isinstance(place, Local) else None
    if around is not None:
        raise InputError(
            f"{str(place)!r} is inside of the run {str(around)!r}: name a folder outside of it."
        )
    if "spec.json" in place:
        spec_of_run(place)  # refuses where it is somebody else's
        return
    refuse_foreign_files(str(place), place.entries(), OURS.__contains__, "a run")


@dataclass(frozen=True)
class AgreedSpec:
    """The spec of a run, and what of it lies somewhere else than before."""

    spec: RunSpec
    moved: tuple[str, ...] = ()


def agree_on_spec(
    place: Place, spec: RunSpec | None, *, resume: bool, header: Header | None
) -> AgreedSpec:
    """The stored spec, which a given one must equal but for where model and data lie; the given one before a plan."""
    stored = spec_of_run(place) if place.get("spec.json") is not None else None
    if stored is None and header is not None:
        raise InputError(
            f"spec.json of {str(place)!r} is missing: put it back, or start anew in another folder."
        )
    if stored is None or (header is None and spec is not None):
        if spec is None:
            raise InputError(
                f"{str(place)!r} is no run yet: give it a spec (a TOML file, or a model and data)."
            )
        return AgreedSpec(spec)
    if not resume:
        raise InputError(
            f"{str(place)!r} holds a run already: go on with it (--resume), or choose another folder."
        )
    if spec is None:
        return AgreedSpec(stored)

    other = spec.settings_that_differ(stored)
    wrong = [name for name in other if name not in MOVABLE]
    if wrong:
        raise InputError(
            f"{str(place)!r} is a run with another {wrong[0]}: give its own spec, or choose another folder."
        )
    return AgreedSpec(spec, tuple(other))


def check_data(place: Place, spec: RunSpec, means: Means, header: Header) -> None:
    """Refuse data that were moved, and are not those that the run was begun with."""
    if not header.fingerprint:
        raise InputError(
            f"{str(place)!r} was planned before raison kept a fingerprint of the data: leave the data away, they are "
            "in its plan."
        )
    if fingerprint_of_corpus(spec, means.data_dir) != header.fingerprint:
        raise InputError(
            f"{spec.data!r} holds other texts than {str(place)!r} was begun with: name the data that it was begun "
            "with, or start anew in another folder."
        )


def agree_on_environment(place: Place, now: Environment) -> None:
    """A run is made by one model and one set of libraries: numbers of two would differ in their last digits."""
    if place.get(ENVIRONMENT) is None:
        now.write(place)
        return
    before = stored_environment(place)
    if before.methods and before.methods != now.methods:
        raise InputError(
            f"A file that a method of {str(place)!r} names is another one now, and its numbers would not fit together: "
            "put the old one back, or start anew in another folder."
        )
    stored = asdict(before)
    for name, value in asdict(now).items():
        if name in ("machine", "methods") or value is None:  # None: the workers will see
            continue
        if stored[name] != value:
            raise InputError(
                f"{str(place)!r} was begun with another {name} ({stored[name]}, now {value}), and its "
                "numbers would not fit together: use that one, or start anew in another folder."
            )
