"""Repairing and compacting a run: damaged files go aside, failures are tried again, many shard files become few."""

from __future__ import annotations

from raison.core import limits
from raison.runs import checked_lines
from raison.runs.checked_lines import Damage
from raison.runs.storage import Place
from raison.runs.store import (
    COMPACT,
    FOLDER,
    ShardFiles,
    count_failures,
    shard_files,
    shards_by_file,
)
from raison.runs.verify import verify_run

__all__ = ["compact_shards", "put_failures_aside", "repair_run"]

LARGE = 64_000_000  # bytes of a compacted file, about


def repair_run(place: Place) -> list[str]:
    """Put damaged files aside; what was done is told, and their shards can be made again."""
    by_file: dict[str, list[Damage]] = {}
    for damage in verify_run(place).damage:
        by_file.setdefault(damage.file, []).append(damage)
    return [repair_file(place, file, damage) for file, damage in by_file.items()]


def repair_file(place: Place, file: str, damage: list[Damage]) -> str:
    """Put one damaged file aside where that helps; returns what was done."""
    first = damage[0]
    if file == "spec.json":
        return f"{first}: put the right ones back; nothing was moved."
    if file.startswith("costs/"):
        place.move(file, f"damaged/{file}")
        return f"{first}: it is in damaged/ now; what these results took is lost, they are not."
    if not file.startswith(f"{FOLDER}/"):
        return f"{first}: a plan can't be mended; start the run anew in another folder."
    reason = "its end was cut off" if all(each.torn for each in damage) else str(first)
    place.move(file, f"damaged/{file.removeprefix(f'{FOLDER}/')}")
    return f"{file}: {reason}; it is in damaged/ now, and `raison run --resume` makes its shards again."


def put_failures_aside(place: Place) -> None:
    """Put the files with failures aside, so that their shards are made again."""
    for name in shard_files(place):
        if count_failures(place, name):
            place.move(f"{FOLDER}/{name}", f"retried/{name}")


def compact_shards(place: Place, large: int = LARGE) -> tuple[int, int]:
    """Put whole shards into few files; returns how many files there were and are. Can be killed at any moment."""
    files = ShardFiles.of(place)
    known = shards_by_file(place)
    delete_compacted_copies(files, list(known))
    number = next_compacted_number(place)
    group: list[str] = []
    size = 0
    for name in sorted(name for name in known if not name.startswith(COMPACT)):
        bytes_of_file = len(place.get(f"{FOLDER}/{name}") or b"")
        if group and size + bytes_of_file > large:
            number = join_shard_files(files, group, number)
            group, size = [], 0
        group.append(name)
        size += bytes_of_file
    join_shard_files(files, group, number)
    return len(known), len(shards_by_file(place))


def delete_compacted_copies(files: ShardFiles, known: list[str]) -> None:
    """Delete shards that stand in a compacted file as well: a compaction was killed before it could."""
    copies = set(shard_files(files.place)) - set(known)
    if not copies:
        return
    for name in known:
        if name.startswith(COMPACT):
            files.read(name)  # where it is not whole, they may be the only good ones
    for name in copies:
        files.place.delete(f"{FOLDER}/{name}")


def next_compacted_number(place: Place) -> int:
    """The number of the next compacted file."""
    taken = [-1]
    for name in shard_files(place):
        if name.startswith(COMPACT):
            taken.append(int(name.removeprefix(COMPACT).removesuffix(".jsonl")))
    return max(taken) + 1


def join_shard_files(files: ShardFiles, names: list[str], number: int) -> int:
    """Put several files into one of that number; returns the number of the next. One file stays as it is."""
    if len(names) < 2:
        return number
    bodies: list[bytes] = []
    shards: list[int] = []
    for name in names:
        read = files.read(name)
        bodies += read.bodies
        shards += read.shards
    joined = checked_lines.pack_lines(map(limits.read_json_text, bodies), shards)
    files.place.put(f"{FOLDER}/{COMPACT}{number:06d}.jsonl", joined)
    for name in names:
        files.place.delete(f"{FOLDER}/{name}")
    return number + 1
