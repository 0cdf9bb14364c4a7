"""Verification of a run: every byte of its files is read, and compared with the plan and the keys, so that damage
is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from raison.core.errors import InputError
from raison.core.json_record import JsonObject
from raison.runs import checked_lines
from raison.runs.checked_lines import Damage
from raison.runs.identity import key_of_work, method_identities, stored_environment
from raison.runs.plan import HEADER, SAME, Header, plan_file
from raison.runs.result_records import ResultRecord
from raison.runs.storage import Place
from raison.runs.store import (
    FOLDER,
    ShardFiles,
    is_shard_file,
    method_names_in_store,
    shard_files,
    shards_by_file,
    spec_of_run,
)
from raison.studies.method_lists import method_list

__all__ = ["Verification", "verify_run"]


@dataclass
class Verification:
    """What a look at all files has shown."""

    records: int = 0
    failed: int = 0
    shards: int = 0
    missing: list[int] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not self.damage


def verify_run(place: Place) -> Verification:
    """Read every byte: checksums, counts, keys (made again from what is stored), and that nothing is there twice."""
    return Verifier(place).verify()


@dataclass(frozen=True)
class PlannedRecord:
    """What the plan says about a record, as JSON."""

    index: int
    example: JsonObject
    method: str

    def describes(self, record: JsonObject) -> bool:
        return (self.index, self.example, self.method) == (
            record["index"],
            record["example"],
            record["method"],
        )


class Verifier:
    """Looks at all files of a run."""

    def __init__(self, place: Place):
        self.place = place
        self.spec = spec_of_run(place)
        self.files = ShardFiles.of(place)
        environment = stored_environment(place)
        self.model = environment.model or ""
        # a run that was begun before they were kept has none
        self.methods = environment.methods or method_identities(method_list(self.spec.methods))
        self.names = method_names_in_store(self.spec)
        self.seen: set[bytes] = set()  # keys
        self.keyless: list[Damage] = []
        self.verification = Verification()

    def verify(self) -> Verification:
        verification = self.verification
        verification.damage += strange_files_in_run(self.place)
        verification.damage += plan_damage(self.place, self.files.header)
        verification.damage += cost_damage(self.place)
        done: set[int] = set()
        for name, numbers in shards_by_file(self.place).items():
            done.update(numbers)
            verification.shards += len(numbers)
            self.verify_file(name)

        if len(self.keyless) == len(self.seen) > 1:  # all of them: it is not the records
            changed = "or environment.json was changed: they give no record's key"
            self.keyless = [Damage("spec.json", 1, changed)]
        verification.damage += self.keyless
        if self.files.header is not None:
            verification.missing = sorted(set(range(self.files.header.shards)) - done)
        return verification

    def verify_file(self, name: str) -> None:
        """Look at one file of shards."""
        read = self.files.read_damaged(name)
        self.verification.damage += read.damage
        planned: Iterator[PlannedRecord] = iter(())
        if self.files.header is not None and read.whole:
            planned = planned_records(self.place, read.shards, self.names)
        for number, data in enumerate(read.records(), 1):
            self.verify_record(data, f"{FOLDER}/{name}", number, planned)

    def verify_record(
        self, data: JsonObject, file: str, number: int, planned: Iterator[PlannedRecord]
    ) -> None:
        """Look at one record; a damaged one takes no turn in the plan."""
        damage = self.verification.damage
        try:
            record = ResultRecord.from_json(data)
        except InputError:
            damage.append(Damage(file, number, "is no record of a result"))
            return
        self.verification.records += 1
        self.verification.failed += record.failure is not None
        wanted = next(planned, None)
        if wanted is not None and not wanted.describes(data):
            damage.append(Damage(file, number, "is not what the plan has there"))
            return

        key = key_of_work(
            self.model, self.spec, self.methods.get(record.method, []), record.example
        )
        if key != record.key:
            self.keyless.append(Damage(file, number, "has a key that its content does not give"))
        short = bytes.fromhex(record.key.partition(":")[2])[:16]
        if short in self.seen:
            damage.append(Damage(file, number, "stands there twice"))
        self.seen.add(short)


def planned_records(place: Place, shards: list[int], methods: list[str]) -> Iterator[PlannedRecord]:
    """What the records of some shards are about, in order; nothing where the plan itself is damaged."""
    for number in shards:
        read = checked_lines.read_checked_lines(
            place.get(plan_file(number)) or b"", plan_file(number)
        )
        if not read.whole or read.shards != [number]:
            return
        rows = read.records()
        next(rows)  # the chunks
        for row in rows:
            for method in methods:
                yield PlannedRecord(row["index"], row["example"], method)


def strange_files_in_run(place: Place) -> list[Damage]:
    """Files among the shards that are none by their names."""
    names = [name for name in place.names(FOLDER) if not is_shard_file(name)]
    return [Damage(f"{FOLDER}/{name}", 1, "is in a file whose name no shard has") for name in names]


def plan_damage(place: Place, header: Header | None) -> list[Damage]:
    """What is wrong with the plan."""
    if header is None:
        return [Damage(HEADER, 1, "is missing, and with it the plan")] if shard_files(place) else []
    damage: list[Damage] = []
    same = place.get(SAME)
    if same is not None:
        damage += checked_lines.read_checked_lines(same, SAME).damage
    for number in range(header.shards):
        file = plan_file(number)
        read = checked_lines.read_checked_lines(place.get(file) or b"", file)
        damage += read.damage
        if read.whole and read.shards != [number]:
            damage.append(Damage(file, len(read.bodies) + 1, f"plans the shards {read.shards}"))
    return damage


def cost_damage(place: Place) -> list[Damage]:
    """What is wrong with the files of what results took."""
    damage: list[Damage] = []
    for name in place.names("costs"):
        file = f"costs/{name}"
        damage += checked_lines.read_checked_lines(place.get(file) or b"", file).damage
    return damage
