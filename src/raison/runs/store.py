"""The shard files of a run as one store: which are there, their records, failures and damage.

A shard is a file that never changes once it is there. `maintenance.compact_shards` puts many of them into few; which
shards a file holds stands in its last line, so a shard that is there twice (a compaction was killed) is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from raison.core import limits
from raison.core.errors import InputError
from raison.runs import checked_lines
from raison.runs.plan import Header, plan_header_of
from raison.runs.result_records import ResultRecord
from raison.runs.run_spec import RunSpec
from raison.runs.storage import Place
from raison.studies.method_lists import method_list

__all__ = [
    "COMPACT",
    "FOLDER",
    "ShardFiles",
    "count_failures",
    "count_stored_explanations",
    "done_shards",
    "is_shard_file",
    "method_names_in_store",
    "records_of_run",
    "repair_advice_on_damage",
    "shard_files",
    "shards_by_file",
    "shards_of_file",
    "spec_of_run",
]

FOLDER = "shards"
COMPACT = "compact-"  # how the names of files with several shards begin
NAME = re.compile(r"(compact-)?\d{6,}\.jsonl")
OPEN = 3  # files that are held in memory at a time


def spec_of_run(place: Place) -> RunSpec:
    """The spec of a run."""
    data = place.get("spec.json")
    if data is None:
        raise InputError(f"{str(place)!r} is no run: name the folder of one.")
    try:
        settings = limits.read_json_text(data)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise InputError(
            f"The spec of {str(place)!r} is damaged: start the run anew in another folder."
        )
    return RunSpec.of(settings, "spec.json")


def method_names_in_store(spec: RunSpec) -> list[str]:
    """The methods of a run, as its records name them."""
    return [str(method.spec()) for method in method_list(spec.methods)]


# -- files ----------------------------------------------------------------------------------------------------


def is_shard_file(name: str) -> bool:
    """Whether a file of a run holds results."""
    return NAME.fullmatch(name) is not None


def shard_files(place: Place) -> list[str]:
    """Names of the files that hold shards."""
    return [name for name in place.names(FOLDER) if is_shard_file(name)]


def shards_of_file(place: Place, name: str) -> list[int]:
    """The shards that a file says it holds; those of plain shards are in their name."""
    if not name.startswith(COMPACT):
        return [int(name.removesuffix(".jsonl"))]
    data = place.get(f"{FOLDER}/{name}") or b""
    last = checked_lines.body_of_line(data.rstrip(b"\n").rpartition(b"\n")[2])
    return [] if last is None else list(limits.read_json_text(last).get("shards", []))


def done_shards(place: Place) -> set[int]:
    """Shards that are there, whole or not: `verify` looks into them."""
    return {number for name in shard_files(place) for number in shards_of_file(place, name)}


def shards_by_file(place: Place) -> dict[str, list[int]]:
    """File by file, the shards that are read from it: compacted files first, each shard once."""
    by_file: dict[str, list[int]] = {}
    seen: set[int] = set()
    for name in sorted(shard_files(place), key=lambda name: (not name.startswith(COMPACT), name)):
        held = shards_of_file(place, name)
        new = [number for number in held if number not in seen]
        seen.update(new)
        if (
            new or not held
        ):  # a compacted file that does not say what it holds is damaged, and no reason for silence
            by_file[name] = new
    return by_file


def count_failures(place: Place, name: str) -> int:
    """Records of a file that tell a failure; within texts the quotes would be escaped."""
    return (place.get(f"{FOLDER}/{name}") or b"").count(b',"failed":{"reason":')


def count_stored_explanations(place: Place, name: str) -> int:
    """Explanations in a file: each names its encoding by a number; within texts the quotes would be escaped."""
    return (place.get(f"{FOLDER}/{name}") or b"").count(b'"encoding":')


def repair_advice_on_damage(place: Place, damage: checked_lines.Damage) -> InputError:
    """The error of a reader that meets damage."""
    return InputError(
        f"{damage} in {str(place)!r}: `raison store repair` puts it aside, and `raison run --resume` makes it again."
    )


# -- records --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShardFiles:
    """Reads the files of a run, which hold what its plan says."""

    place: Place
    header: Header | None
    methods: int  # records of each text

    @classmethod
    def of(cls, place: Place) -> ShardFiles:
        return cls(place, plan_header_of(place), len(method_names_in_store(spec_of_run(place))))

    def read(self, name: str) -> checked_lines.CheckedLines:
        """A file that is whole; anything else is an error."""
        read = self.read_damaged(name)
        if read.damage:
            raise repair_advice_on_damage(self.place, read.damage[0])
        return read

    def read_damaged(self, name: str) -> checked_lines.CheckedLines:
        """A file, with all that is wrong with it."""
        file = f"{FOLDER}/{name}"
        read = checked_lines.read_checked_lines(self.place.get(file) or b"", file)
        if read.whole:
            misfit = self.misfit(name, read)
            if misfit:
                read.damage.append(checked_lines.Damage(file, len(read.bodies) + 1, misfit))
        return read

    def misfit(self, name: str, read: checked_lines.CheckedLines) -> str:
        """What is wrong with a whole file that does not hold what its name and the plan say; "" where all is well."""
        if sorted(read.shards) != sorted(shards_of_file(self.place, name)):
            return f"says that it holds the shards {read.shards}"
        if self.header is None:
            return ""
        strange = [number for number in read.shards if not 0 <= number < self.header.shards]
        if strange:
            return f"holds a shard {strange[0]}, and the plan has none of that number"
        planned = sum(self.header.counts[number] for number in read.shards) * self.methods
        if planned != len(read.bodies):
            return f"ends {len(read.bodies)} records where the plan has {planned}"
        return ""

    def bodies_of_shard(self, read: checked_lines.CheckedLines, number: int) -> list[bytes]:
        """The lines of one shard in a file that holds what the plan says."""
        if self.header is None:
            return read.bodies
        before = read.shards[: read.shards.index(number)]
        begin = sum(self.header.counts[each] for each in before) * self.methods
        return read.bodies[begin : begin + self.header.counts[number] * self.methods]


def records_of_run(place: Place) -> Iterator[ResultRecord]:
    """Every record in the order of the plan; damage is an error that names it."""
    spec = spec_of_run(place)
    methods = method_names_in_store(spec)
    files = ShardFiles.of(place)
    in_order = []
    for name, numbers in shards_by_file(place).items():
        in_order += [(number, name) for number in numbers or [-1]]

    held: dict[str, checked_lines.CheckedLines] = {}
    for number, name in sorted(in_order):
        if name not in held:
            if len(held) >= OPEN:  # shards stand in order in their files, so one is mostly enough
                held.pop(next(iter(held)))
            held[name] = files.read(name)
        for body in files.bodies_of_shard(held[name], number):
            yield record_of_run(place, name, body, spec, methods)


def record_of_run(
    place: Place, name: str, body: bytes, spec: RunSpec, methods: list[str]
) -> ResultRecord:
    """A record that belongs to the run."""
    file = f"{FOLDER}/{name}"
    try:
        record = ResultRecord.from_json(limits.read_json_text(body))
    except InputError:
        raise repair_advice_on_damage(
            place, checked_lines.Damage(file, 1, "is no record of a result")
        ) from None
    measured = record.numbers is not None or record.failure is not None
    if record.method not in methods or (spec.metrics and not measured):
        raise repair_advice_on_damage(place, checked_lines.Damage(file, 1, "is of another run"))
    return record
