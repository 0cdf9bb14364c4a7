"""Runs on Ray: whichever of its processes are killed, nothing is lost and the bytes are the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from raison.core.errors import ModelError
from raison.models.load import load
from raison.runs.driver import run
from raison.runs.identity import model_identity
from raison.runs.ray_actors import packed_model
from raison.runs.run_spec import Means
from raison.runs.storage import place_of
from raison.runs.store import done_shards
from raison.runs.verify import verify_run
from tests.helpers.runs import actors_below, parquet_of, spec_of, write_texts

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
    # a process that was killed is not waited for by Ray
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

KINDS = ("actor", "worker", "raylet", "driver")


STORE = 80_000_000  # bytes of a node's object store, the least that Ray takes


COMMAND = [sys.executable, "-m", "raison", "run", "--resume", "--workers", "2"]


class Machines:
    """Several nodes of Ray on this machine: one for the driver, and some with a core each for workers."""

    def __init__(self, workers: int = 2):
        from ray.cluster_utils import Cluster

        beats = {"health_check_period_ms": 1000, "health_check_failure_threshold": 5}
        head = {
            "num_cpus": 0,
            "object_store_memory": STORE,
            "include_dashboard": False,
            "_system_config": beats,
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.workers = workers
        self.nodes: list = []
        self.refill()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def refill(self) -> None:
        """As many nodes as at first."""
        while len(self.nodes) < self.workers:
            self.nodes.append(
                self.cluster.add_node(wait=False, num_cpus=1, object_store_memory=STORE)
            )

    def lose(self, which: int) -> None:
        """Kill the raylet of a node, and with it all that runs there; no other takes its place."""
        node = self.nodes.pop(which)
        (raylet,) = node.all_processes["raylet"]
        os.kill(raylet.process.pid, signal.SIGKILL)
        with suppress(Exception):  # Ray has no one error for a node that has gone
            self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def machines() -> Iterator[Machines]:
    pytest.importorskip("ray")
    found = Machines()
    yield found
    found.cluster.shutdown()


class Driver:
    """A driver by the command line; one that was killed is begun again with --resume."""

    def __init__(self, place: Path, address: str):
        self.place, self.address = place, address
        self.begin()

    def begin(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.log = open(self.place.with_name(f"{self.place.name}.log"), "a+")  # noqa: SIM115
        command = [*COMMAND, "--out", str(self.place), "--ray", self.address]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=self.log, env=environment
        )

    def done(self) -> int:
        return len(done_shards(place_of(self.place)))

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        code = self.process.wait()
        self.log.seek(0)
        said = self.log.read()
        self.log.close()
        return code, said

    def strike(self) -> None:
        self.process.kill()
        code, said = self.end()
        assert code == -signal.SIGKILL, said
        self.begin()


def struck(
    machines: Machines, driver: Driver, kinds: Sequence[str], rng: random.Random | None = None
) -> Counter[str]:
    """Kill processes of these kinds one after the other while the run goes on; returns how many of each there were.

    Each is killed when a shard was done since the one before; with `rng`, every other one at any moment.
    """
    count: Counter[str] = Counter()
    for kind in kinds:
        before = driver.done()
        early = rng is not None and rng.random() < 0.5
        pause = time.monotonic() + (rng.uniform(0.05, 3.0) if early and rng is not None else 0.0)
        while driver.process.poll() is None:
            time.sleep(0.05)
            late = time.monotonic() >= pause if early else driver.done() > before
            if late and strike(kind, machines, driver, rng):
                count[kind] += 1
                break
        else:
            break
    code, said = driver.end()
    assert code == 0, said
    return count


def strike(kind: str, machines: Machines, driver: Driver, rng: random.Random | None) -> bool:
    """Kill one process of a kind, if there is one."""
    if kind == "driver":
        driver.strike()
        return True
    if kind == "raylet":
        machines.refill()
        machines.lose(rng.randrange(len(machines.nodes)) if rng is not None else 0)
        return True
    victims = actors_below(
        os.getpid(), {"worker": b"ray::WorkerActor", "actor": b"ray::WorkMarks"}[kind]
    )
    if not victims:
        return False
    with suppress(ProcessLookupError):
        os.kill(rng.choice(victims) if rng is not None else victims[0], signal.SIGKILL)
        return True
    return False


def begun(place: Path, spec) -> Path:
    place.mkdir()
    (place / "spec.json").write_text(spec.to_json())
    return place


def check(place: Path, plain: Path, records: int) -> None:
    found = verify_run(place_of(place))
    assert found.whole and not found.missing and not found.failed and found.records == records
    assert parquet_of(place) == parquet_of(plain)


def test_a_kill_of_each_kind_changes_nothing_on_ray(folder, machines, tmp_path):
    write_texts(tmp_path / "data.csv", 160)
    spec = spec_of(folder, data=str(tmp_path / "data.csv"), metrics=(), shard_tokens=80)
    run(tmp_path / "plain", spec)
    driver = Driver(begun(tmp_path / "r", spec), machines.address)
    assert struck(machines, driver, KINDS) == Counter(KINDS)
    check(tmp_path / "r", tmp_path / "plain", 320)


@pytest.mark.full
def test_forty_kills_change_nothing_on_ray(folder, machines, tmp_path, record_property):
    """Ten of each kind: the actor of marks, workers, raylets of workers' nodes, drivers."""
    write_texts(tmp_path / "data.csv", 1000)
    spec = spec_of(folder, data=str(tmp_path / "data.csv"), metrics=(), shard_tokens=80)
    run(tmp_path / "plain", spec)
    rng = random.Random(0)
    count: Counter[str] = Counter()
    rounds = 0
    while left := [
        kind for kind in KINDS for _ in range(10 - count[kind])
    ]:  # a run that ends early is begun anew
        rounds += 1
        rng.shuffle(left)
        place = begun(tmp_path / f"r{rounds}", spec)
        count += struck(machines, Driver(place, machines.address), left, rng)
        check(place, tmp_path / "plain", 2000)
    assert count == Counter(dict.fromkeys(KINDS, 10))
    record_property("kills", f"{dict(count)} in {rounds} runs of 1,000 texts, 0 lost")


@pytest.mark.full
def test_a_lost_node_of_the_driver_ends_it_in_a_sentence(folder, tmp_path):
    pytest.importorskip("ray")
    write_texts(
        tmp_path / "data.csv", 2000
    )  # Ray tells it after some 15 seconds, in which the workers go on
    spec = spec_of(folder, data=str(tmp_path / "data.csv"), metrics=(), shard_tokens=80)
    run(tmp_path / "plain", spec)
    driver = Driver(begun(tmp_path / "r", spec), "local")
    while not driver.done():
        assert driver.process.poll() is None
        time.sleep(0.05)
    (raylet,) = raylets_below(driver.process.pid)
    os.kill(raylet, signal.SIGKILL)
    code, said = driver.end()
    assert (
        code == 1
        and "raison: Ray has lost the node of the driver" in said
        and "Traceback" not in said
    )
    assert driver.done() > 0
    driver.begin()
    code, said = driver.end()
    assert code == 0, said
    check(tmp_path / "r", tmp_path / "plain", 4000)


def raylets_below(pid: int) -> list[int]:
    found = []
    for each in actors_below(pid, b""):
        with suppress(OSError):
            if os.path.basename(os.readlink(f"/proc/{each}/exe")) == "raylet":
                found.append(each)
    return found


def test_another_model_is_refused_on_ray(folder):
    """Before any actor gets it; the run's own is packed."""
    spec = spec_of(folder)
    identity = model_identity(load(spec.model))
    assert packed_model(spec, Means(), identity).tokenizer is not None
    with pytest.raises(ModelError, match="another model than the run was begun with"):
        packed_model(spec, Means(), "0" * 32)
