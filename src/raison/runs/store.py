"""The shards of a run as one store: what is there, whether it is whole, and how it is mended, packed and read.

A shard is a file that never changes once it is there. `compact` puts many of them into few; which shards a file holds
stands in its last line, so a shard that is there twice (a compaction was killed) is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from raison.core import limits
from raison.core.errors import InputError
from raison.core.records import Example
from raison.runs import lines
from raison.runs.identity import key_of, methods_identity
from raison.runs.plan import SAME, Header, header_of, name_of
from raison.runs.spec import RunSpec
from raison.runs.storage import Place

__all__ = [
    "Found", "compact", "done_shards", "environment_of", "explanations", "failures", "homes", "records", "repair",
    "retried", "spec_of", "verify",
]  # fmt: skip

FOLDER = "shards"
NAME = re.compile(r"(compact-)?\d{6,}\.jsonl")
LARGE = 64_000_000  # bytes of a compacted file, about
OPEN = 3  # files that are held in memory at a time


def spec_of(place: Place) -> RunSpec:
    data = place.get("spec.json")
    if data is None:
        raise InputError(f"{str(place)!r} is no run: name the folder of one.")
    try:
        given = limits.from_json(data)
        if not isinstance(given, dict):
            raise ValueError("no object")
        return RunSpec.of(given, "spec.json")
    except ValueError:
        raise InputError(f"The spec of {str(place)!r} is damaged: start the run anew in another folder.") from None


def files(place: Place) -> list[str]:
    return [name for name in place.names(FOLDER) if NAME.fullmatch(name)]


def held_by(place: Place, name: str) -> list[int]:
    """The shards that a file says it holds; those of plain shards are in their name."""
    if not name.startswith("compact-"):
        return [int(name.removesuffix(".jsonl"))]
    data = place.get(f"{FOLDER}/{name}") or b""
    last = lines.unpacked(data.rstrip(b"\n").rpartition(b"\n")[2])
    return list(limits.from_json(last).get("shards", [])) if last is not None else []


def done_shards(place: Place) -> set[int]:
    """Shards that are there, whole or not: `verify` looks into them."""
    return {number for name in files(place) for number in held_by(place, name)}


def homes(place: Place) -> dict[str, list[int]]:
    """File by file, the shards that are read from it: compacted files first, each shard once."""
    found: dict[str, list[int]] = {}
    seen: set[int] = set()
    for name in sorted(files(place), key=lambda name: (not name.startswith("compact-"), name)):
        held = held_by(place, name)
        mine = [number for number in held if number not in seen]
        seen.update(mine)
        if mine or not held:  # a compacted file that does not say what it holds is damaged, and no reason for silence
            found[name] = mine
    return found


def records(place: Place) -> Iterator[dict[str, Any]]:
    """Every record in the order of the plan; damage is an error that names it."""
    spec, header = spec_of(place), header_of(place)
    methods = names_of(spec)
    known = homes(place)
    opened: dict[str, lines.Lines] = {}
    order = sorted((number, name) for name, numbers in known.items() for number in numbers or [-1])
    for number, name in order:
        if name not in opened:
            if len(opened) >= OPEN:  # shards stand in order in their files, so one is mostly enough
                opened.pop(next(iter(opened)))
            opened[name] = whole_file(place, name, header, len(methods))
        found = opened[name]
        for body in found.bodies if header is None else part_of(found, number, header, len(methods)):
            record = limits.from_json(body)
            if record["method"] not in methods or (spec.metrics and not {"numbers", "failed"} & set(record)):
                raise InputError(told_of(place, lines.Damage(f"{FOLDER}/{name}", 1, "is of another run")))
            yield record


def names_of(spec: RunSpec) -> list[str]:
    """The methods of a run, as its records name them."""
    from raison.studies.method_lists import method_list

    return [str(each.spec()) for each in method_list(spec.methods)]


def part_of(found: lines.Lines, number: int, header: Header, each: int) -> list[bytes]:
    """The lines of one shard in a file that holds what the plan says."""
    begin = sum(header.counts[before] for before in found.shards[: found.shards.index(number)]) * each
    return found.bodies[begin : begin + header.counts[number] * each]


def misfit(place: Place, name: str, found: lines.Lines, header: Header | None, each: int) -> str:
    """What is wrong with a whole file that does not hold what its name and the plan say; "" where all is well."""
    if sorted(found.shards) != sorted(held_by(place, name)):
        return f"says that it holds the shards {found.shards}"
    if header is None:
        return ""
    if strange := [number for number in found.shards if not 0 <= number < header.shards]:
        return f"holds a shard {strange[0]}, and the plan has none of that number"
    planned = sum(header.counts[number] for number in found.shards) * each
    return "" if planned == len(found.bodies) else f"ends {len(found.bodies)} records where the plan has {planned}"


def whole_file(place: Place, name: str, header: Header | None, each: int) -> lines.Lines:
    file = f"{FOLDER}/{name}"
    found = lines.read(place.get(file) or b"", file)
    if found.whole and (wrong := misfit(place, name, found, header, each)):
        found.damage.append(lines.Damage(file, len(found.bodies) + 1, wrong))
    if not found.whole:
        raise InputError(told_of(place, found.damage[0]))
    return found


def told_of(place: Place, damage: lines.Damage) -> str:
    return f"{damage} in {str(place)!r}: `raison store repair` puts it aside, and `raison run --resume` makes it again."


def failures(place: Place, name: str) -> int:
    """Records of a file that tell a failure; within texts the quotes would be escaped."""
    return (place.get(f"{FOLDER}/{name}") or b"").count(b',"failed":{"reason":')


def explanations(place: Place, name: str) -> int:
    """Explanations in a file: each names its encoding by a number; within texts the quotes would be escaped."""
    return (place.get(f"{FOLDER}/{name}") or b"").count(b'"encoding":')


@dataclass
class Found:
    """What a look at all files has shown."""

    records: int = 0
    failed: int = 0
    shards: int = 0
    missing: list[int] = field(default_factory=list)
    damage: list[lines.Damage] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not self.damage


def verify(place: Place) -> Found:
    """Read every byte: checksums, counts, keys (made again from what is stored), and that nothing is there twice."""
    spec, found = spec_of(place), Found()
    header = header_of(place)
    told = environment_of(place)
    found.damage += strangers(place)
    found.damage += plan_damage(place, header)
    found.damage += cost_damage(place)
    if (known := told.get("methods")) is None:  # of a run that was begun before this was kept
        from raison.studies.method_lists import method_list

        known = methods_identity(method_list(spec.methods))
    names = names_of(spec)
    seen: set[bytes] = set()
    done: set[int] = set()
    keyless: list[lines.Damage] = []
    for name, numbers in homes(place).items():
        file = f"{FOLDER}/{name}"
        read = lines.read(place.get(file) or b"", file)
        found.damage += read.damage
        done.update(numbers)
        found.shards += len(numbers)
        wrong = misfit(place, name, read, header, len(names)) if read.whole else ""
        if wrong:
            found.damage.append(lines.Damage(file, len(read.bodies) + 1, wrong))
        planned = planned_rows(place, read.shards, names) if header is not None and read.whole and not wrong else None
        for number, record in enumerate(read.records(), 1):
            if not isinstance(record, dict) or not {"index", "example", "method", "key"} <= set(record):
                found.damage.append(lines.Damage(file, number, "is no record of a result"))
                continue
            found.records += 1
            found.failed += "failed" in record
            mine = next(planned, None) if planned is not None else None
            if mine is not None and mine != (record["index"], record["example"], record["method"]):
                found.damage.append(lines.Damage(file, number, "is not what the plan has there"))
                continue
            example = Example.from_dict(record["example"])
            if key_of(told.get("model", ""), spec, known.get(record["method"], []), example) != record["key"]:
                keyless.append(lines.Damage(file, number, "has a key that its content does not give"))
            short = bytes.fromhex(record["key"].partition(":")[2])[:16]
            if short in seen:
                found.damage.append(lines.Damage(file, number, "stands there twice"))
            seen.add(short)
    if len(keyless) == len(seen) > 1:  # all of them: it is not the records
        keyless = [lines.Damage("spec.json", 1, "or environment.json was changed: they give no record's key")]
    found.damage += keyless
    if header is not None:
        found.missing = sorted(set(range(header.shards)) - done)
    return found


def planned_rows(place: Place, shards: list[int], names: list[str]) -> Iterator[tuple[int, Any, str]]:
    """What the records of some shards are about, in order; nothing where the plan itself is damaged."""
    for number in shards:
        read = lines.read(place.get(name_of(number)) or b"", name_of(number))
        if not read.whole or read.shards != [number]:
            return
        for row in list(read.records())[1:]:
            for name in names:
                yield row["index"], row["example"], name


def cost_damage(place: Place) -> list[lines.Damage]:
    """What is wrong with the files of what results took."""
    names = [f"costs/{name}" for name in place.names("costs")]
    return [each for name in names for each in lines.read(place.get(name) or b"", name).damage]


def environment_of(place: Place) -> dict[str, Any]:
    """What the run was begun with."""
    try:
        found = limits.from_json(place.get("environment.json") or b"null")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(
            f"environment.json of {str(place)!r} is missing or damaged, and without it nobody can tell which model "
            "made its results: put it back, or start anew in another folder."
        )
    return found


def strangers(place: Place) -> list[lines.Damage]:
    """Files among the shards that are none by their names."""
    names = [name for name in place.names(FOLDER) if not NAME.fullmatch(name)]
    return [lines.Damage(f"{FOLDER}/{name}", 1, "is in a file whose name no shard has") for name in names]


def plan_damage(place: Place, header: Header | None) -> list[lines.Damage]:
    """What is wrong with the plan."""
    if header is None:
        lost = lines.Damage("plan/header.json", 1, "is missing, and with it the plan")
        return [lost] if files(place) else []
    found = []
    if (same := place.get(SAME)) is not None:
        found += lines.read(same, SAME).damage
    for number in range(header.shards):
        read = lines.read(place.get(name_of(number)) or b"", name_of(number))
        found += read.damage
        if read.whole and read.shards != [number]:
            found.append(lines.Damage(name_of(number), len(read.bodies) + 1, f"plans the shards {read.shards}"))
    return found


def repair(place: Place) -> list[str]:
    """Put damaged files aside; what was done is told, and their shards can be made again."""
    by_file: dict[str, list[lines.Damage]] = {}
    for each in verify(place).damage:
        by_file.setdefault(each.file, []).append(each)
    said = []
    for file, damage in by_file.items():
        if file == "spec.json":
            said.append(f"{damage[0]}: put the right ones back; nothing was moved.")
            continue
        if file.startswith("costs/"):
            place.move(file, f"damaged/{file}")
            said.append(f"{damage[0]}: it is in damaged/ now; what these results took is lost, they are not.")
            continue
        if not file.startswith(f"{FOLDER}/"):
            said.append(f"{damage[0]}: a plan can't be mended; start the run anew in another folder.")
            continue
        what = "its end was cut off" if all(each.torn for each in damage) else str(damage[0])
        place.move(file, f"damaged/{file.removeprefix(f'{FOLDER}/')}")
        said.append(f"{file}: {what}; it is in damaged/ now, and `raison run --resume` makes its shards again.")
    return said


def retried(place: Place) -> int:
    """Put the files with failures aside, so that their shards are made again; returns how many."""
    chosen = [name for name in files(place) if failures(place, name)]
    for name in chosen:
        place.move(f"{FOLDER}/{name}", f"retried/{name}")
    return len(chosen)


def compact(place: Place, large: int = LARGE) -> tuple[int, int]:
    """Put whole shards into few files; returns how many files there were and are. Can be killed at any moment."""
    known = homes(place)
    header, each = header_of(place), len(names_of(spec_of(place)))
    if twice := set(files(place)) - set(known):  # a compaction was killed before it could remove these
        for name in known:
            if name.startswith("compact-"):
                whole_file(place, name, header, each)  # where it is not whole, they may be the only good ones
        for name in twice:
            place.delete(f"{FOLDER}/{name}")
    plain = sorted(name for name in known if not name.startswith("compact-"))
    before = len(known)
    group: list[str] = []
    size = 0
    taken = [int(name[len("compact-") : -len(".jsonl")]) for name in files(place) if name.startswith("compact-")]
    number = max(taken, default=-1) + 1
    for name in [*plain, ""]:
        data = place.get(f"{FOLDER}/{name}") if name else None
        if group and (data is None or size + len(data) > large):
            if len(group) > 1:
                join(place, group, number)
                number += 1
            group, size = [], 0
        if data is not None:
            group.append(name)
            size += len(data)
    return before, len(homes(place))


def join(place: Place, names: list[str], number: int) -> None:
    bodies: list[bytes] = []
    shards: list[int] = []
    header, each = header_of(place), len(names_of(spec_of(place)))
    for name in names:
        read = whole_file(place, name, header, each)
        bodies += read.bodies
        shards += read.shards
    made = lines.packed((limits.from_json(body) for body in bodies), shards)
    place.put(f"{FOLDER}/compact-{number:06d}.jsonl", made)
    for name in names:
        place.delete(f"{FOLDER}/{name}")
