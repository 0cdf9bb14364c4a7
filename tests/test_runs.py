"""Runs: the same bytes whoever does the work, however often it is killed; nothing lost, nothing twice."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import raison
from raison.cli.app import app, assemble
from raison.core import progress
from raison.core.errors import InputError, ModelError, RaisonError, out_of_memory
from raison.core.records import Example
from raison.runs import lines
from raison.runs.driver import run
from raison.runs.executor import Death
from raison.runs.export import export
from raison.runs.lock import owned
from raison.runs.maintenance import compact, repair
from raison.runs.plan import PlannedText, header_bytes, header_of, shard_of
from raison.runs.planner import chunks_of
from raison.runs.query import query
from raison.runs.queue import Queue
from raison.runs.records import Failure
from raison.runs.report import report
from raison.runs.spec import Means, RunSpec, read_spec
from raison.runs.status import status_of
from raison.runs.storage import Local, Unwritten, place_of
from raison.runs.store import done_shards, records
from raison.runs.verify import verify
from raison.studies.evaluate import evaluate
from raison.testing import tiny_hf

WORDS = "a lovely film story the is and ending cast it very dull stale warm".split()
METHODS = ("leave_one_out", "gradient_norm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A tiny model and a file of texts, one of which stands there twice."""
    place = tmp_path_factory.mktemp("corpus")
    hf, tokenizer = tiny_hf("bert", "classification")
    copy.deepcopy(hf).float().save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    write_texts(place / "data.csv", 60)
    return place


def write_texts(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{' '.join(rng.choice(WORDS, size=rng.integers(3, 15)))} {k}" for k in range(count)]
    rows.append(rows[0])
    path.write_text("text,label\n" + "\n".join(f"{row},positive" for row in rows))


def spec_of(folder: Path, **more) -> RunSpec:
    base = {
        "model": str(folder / "model"), "data": str(folder / "data.csv"), "methods": METHODS,
        "metrics": ("comprehensiveness",), "shard_tokens": 250, "chunk_tokens": 80,
    }  # fmt: skip
    return RunSpec(**{**base, **more})


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory) -> Path:
    """A run that nothing has happened to."""
    place = tmp_path_factory.mktemp("runs") / "plain"
    status = run(place, spec_of(folder))
    assert status.state == "done" and status.failed == 0
    return place


def parquet_of(place: Path) -> bytes:
    out = place.parent / f"{place.name}.parquet"
    export(place_of(place), out)
    return out.read_bytes()


# -- lines ------------------------------------------------------------------------------------------------------


def test_lines_tell_their_damage():
    data = lines.pack([{"a": 1}, {"b": "ü \ud83d"}, {"c": [1.5, None]}], [7])
    found = lines.read(data, "f")
    assert found.whole and found.shards == [7] and [list(r) for r in found.records()] == [["a"], ["b"], ["c"]]
    for cut in range(1, len(data)):
        torn = lines.read(data[:cut], "f")
        assert not torn.whole and torn.damage[-1].torn, cut
        assert len(torn.bodies) == data[:cut].count(b"\n")  # what stands before the cut is whole
    rng = random.Random(0)
    for _ in range(300):
        place, bit = rng.randrange(len(data)), 1 << rng.randrange(8)
        flipped = bytearray(data)
        flipped[place] ^= bit
        assert not lines.read(bytes(flipped), "f").whole, place
    assert not lines.read(data + data, "f").whole
    newer = lines.pack([], [0]).replace(b'"schema":1', b'"schema":9')
    body = newer[len(lines.HEAD) + 16 + len(lines.MIDDLE) : -2]
    newer = lines.HEAD + lines.checksum(body) + lines.MIDDLE + body + b"}\n"
    with pytest.raises(InputError, match=r"written by a newer raison \(schema 9"):
        lines.read(newer, "f")


# -- a run ------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.dictionaries(st.text(max_size=4), st.text() | st.integers() | st.floats(allow_nan=False)), max_size=5),
    st.data(),
)
def test_any_record_comes_back_and_any_cut_or_flip_is_told(records, data):
    records = [{"r": record} for record in records]  # as all records of a store do, these begin with a known field
    try:
        whole = lines.pack(records, [3])
    except ValueError:  # infinite numbers are refused, not written
        return
    found = lines.read(whole, "f")
    assert found.whole and list(found.records()) == records and found.shards == [3]
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = lines.read(whole[:at], "f")
    assert not cut.whole and list(cut.records()) == records[: len(cut.bodies)]
    flipped = bytearray(whole)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    assert not lines.read(bytes(flipped), "f").whole


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60), st.integers(1, 2000))
def test_any_shape_is_dealt_into_chunks_that_fit(sizes, most):
    texts = [PlannedText(n, tokens, Example("x")) for n, tokens in enumerate(sizes)]
    chunks = chunks_of(texts, most)
    assert [n for chunk in chunks for n in chunk] == list(range(len(texts)))
    for chunk in chunks:
        assert len(chunk) == 1 or sum(sizes[n] for n in chunk) <= most
    for one, next_one in pairwise(chunks):  # none could have taken the first of the next
        assert sum(sizes[n] for n in (*one, next_one[0])) > most


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)


@given(TEXTS, TEXTS, st.lists(TEXTS, min_size=1, max_size=3, unique=True), st.integers(1, 10**6))
def test_any_spec_comes_back_from_its_file(tmp_path_factory, model, data, methods, tokens):
    """Or is refused with a sentence; what a run is asked does not depend on how its words are spelled."""
    file = tmp_path_factory.mktemp("spec") / "run.toml"
    given = {"model": model, "data": data, "methods": methods, "shard_tokens": tokens}
    file.write_text(
        "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in given.items()), encoding="utf-8"
    )
    try:
        spec = read_spec(file)
    except InputError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
        return
    assert (spec.model, spec.data, spec.methods) == (model, data, tuple(methods))
    assert RunSpec.of(json.loads(spec.to_json()), "again") == spec


def test_a_run_is_what_explain_and_evaluate_say(folder, done):
    model = raison.load(str(folder / "model"))
    header = header_of(place_of(done))
    assert header.texts == 60 and header.twice == 1 and header.shards > 3
    by_method: dict[str, dict[str, list[float]]] = {name: {} for name in METHODS}
    for record in records(place_of(done)):
        by_method[record.method][record.example.text] = record.explanations[0]["scores"]
    for name in METHODS:
        assert len(by_method[name]) == 60
        for text, scores in list(by_method[name].items())[:10]:
            np.testing.assert_allclose(raison.explain(model, text, name).scores, scores, rtol=1e-4, atol=1e-5)
    made = report(place_of(done))
    texts = [Example(seen.text) for seen in made.texts]
    direct = evaluate(model, texts, METHODS, ["comprehensiveness"])
    for name in METHODS:
        mine, other = made.cell(name, "comprehensiveness"), direct.cell(name, "comprehensiveness")
        assert mine.value == pytest.approx(other.value, rel=1e-4) and mine.low == pytest.approx(other.low, rel=1e-3)
    assert "1 texts stand there more than once" in " ".join(made.notes)


def test_workers_give_the_same_bytes(folder, done, tmp_path):
    status = run(tmp_path / "pool", spec_of(folder), Means(workers=2))
    assert status.state == "done" and status.texts_done == 60
    assert parquet_of(tmp_path / "pool") == parquet_of(done)
    names = sorted(path.name for path in (done / "shards").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "pool" / "shards").iterdir())
    for name in names:
        assert (done / "shards" / name).read_bytes() == (tmp_path / "pool" / "shards" / name).read_bytes()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
def test_progress_is_told_within_a_shard(folder, tmp_path, workers):
    heard = []
    with progress.listen(lambda *told: heard.append(told)):
        run(tmp_path / "r", spec_of(folder, shard_tokens=10_000, chunk_tokens=40), Means(workers=workers))
    counts = [done for done, total, what in heard if what.startswith("texts") or "texts a second" in what]
    total = heard[-1][1]
    assert counts == sorted(counts) and counts[-1] == total
    if workers == 1:  # workers of their own may be done before anybody looks
        assert sum(0 < done < total for done in set(counts)) >= 3  # in the one shard that there is
    assert re.fullmatch(r"\S+ texts a second", heard[-1][2])


def test_all_targets_and_searches(folder, tmp_path):
    run(tmp_path / "r", spec_of(folder, methods=("greedy",), target="all", metrics=(), limit=8))
    found = list(records(place_of(tmp_path / "r")))
    assert len(found) == 8 and {len(record.explanations) for record in found} == {3}
    assert all(each["selected"] is not None for record in found for each in record.explanations)


def test_a_run_goes_on_where_shards_are_missing(folder, done, tmp_path):
    run(tmp_path / "r", spec_of(folder))
    for name in sorted((tmp_path / "r" / "shards").iterdir())[::2]:
        name.unlink()
    assert verify(place_of(tmp_path / "r")).missing
    assert status_of(place_of(tmp_path / "r")).shards_done < header_of(place_of(done)).shards
    with pytest.raises(InputError, match="go on with it \\(--resume\\)"):
        run(tmp_path / "r", spec_of(folder))
    run(tmp_path / "r", resume=True)
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    with pytest.raises(InputError, match="a run with another units"):
        run(tmp_path / "r", spec_of(folder, units="token"), resume=True)


def killed(folder: Path, place: Path, workers: int, kills: int, seed: int, ray: bool = False) -> int:
    """Drive a run by the command line, killing driver or workers at random moments until it is done; kills done."""
    rng = random.Random(seed)
    command = [sys.executable, "-m", "raison", "run", "--out", str(place), "--resume", "--workers", str(workers)]
    if ray:
        command += ["--ray", "local"]
    count = 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    while True:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
        try:
            while process.poll() is None and count < kills:
                time.sleep(rng.uniform(0.05, 3.0))
                victims = children_of(process.pid) if workers > 1 and rng.random() < 0.6 else []
                victim = rng.choice(victims) if victims else process.pid
                try:
                    os.kill(victim, signal.SIGKILL)
                    count += 1
                except ProcessLookupError:
                    continue
                if victim == process.pid:
                    break
            code = process.wait()
        finally:
            told = process.stderr.read().decode()
            process.stderr.close()
        if code == 0:
            return count
        assert code == -signal.SIGKILL, told


def children_of(pid: int) -> list[int]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    names = [(int(child), Path(f"/proc/{child}/cmdline")) for child in found]
    return [child for child, path in names if path.exists() and b"spawn_main" in path.read_bytes()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_kills_change_nothing(folder, done, tmp_path):
    place = tmp_path / "r"
    place.mkdir()
    (place / "spec.json").write_text(spec_of(folder).to_json())
    count = killed(folder, place, workers=2, kills=4, seed=1)
    assert count >= 2
    found = verify(place_of(place))
    assert found.whole and not found.missing and found.records == 120
    assert parquet_of(place) == parquet_of(done)


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_two_hundred_kills_change_nothing(folder, tmp_path):
    """2,000 explanations, 200 kills of drivers and workers, local and on Ray: every one there once, the same bytes."""
    write_texts(tmp_path / "data.csv", 1000)
    spec = spec_of(folder, data=str(tmp_path / "data.csv"), metrics=(), shard_tokens=400)
    run(tmp_path / "plain", spec)
    for name, kills, ray in (("pool", 140, False), ("ray", 60, True)):
        place = tmp_path / name
        count = round_ = 0
        while count < kills:  # a run that ends before enough kills is begun anew
            round_ += 1
            place = tmp_path / f"{name}-{round_}"
            place.mkdir()
            (place / "spec.json").write_text(spec.to_json())
            count += killed(folder, place, workers=2, kills=kills - count, seed=round_, ray=ray)
            found = verify(place_of(place))
            assert found.whole and not found.missing and found.records == 2000
            assert parquet_of(place) == parquet_of(tmp_path / "plain")


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ray_gives_the_same_bytes_and_survives_a_death(folder, done, tmp_path):
    pytest.importorskip("ray")
    place = tmp_path / "r"
    command = [sys.executable, "-m", "raison", "run", "--out", str(place), "--workers", "2", "--ray", "local"]
    spec = spec_of(folder)
    flags = ["-m", spec.model, "-d", spec.data, "--metric", "comprehensiveness", "--shard-tokens", "250"]
    flags += [part for name in METHODS for part in ("-M", name)]
    (tmp_path / "spec.toml").write_text("chunk_tokens = 80\n")
    command = [*command[:4], str(tmp_path / "spec.toml"), *command[4:], *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_DISABLE_IMPORT_WARNING": "1"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    struck = False
    while process.poll() is None:
        time.sleep(0.1)
        if not struck and len(done_shards(place_of(place))) >= 1:
            actors = actors_below(process.pid)
            if actors:
                os.kill(actors[0], signal.SIGKILL)
                struck = True
    told = process.stderr.read().decode()
    process.stderr.close()
    assert process.returncode == 0, told
    assert struck and verify(place_of(place)).whole
    assert parquet_of(place) == parquet_of(done)


def actors_below(pid: int, title: bytes = b"ray::Actor") -> list[int]:
    """Processes of Ray's that descend from a process, by how their command line begins: workers, mostly."""
    parents: dict[int, int] = {}
    names: dict[int, bytes] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(path.name)] = (path / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue

    def below(child: int) -> bool:
        while child in parents and child != pid:
            child = parents[child]
        return child == pid

    return [child for child, name in names.items() if name.startswith(title) and below(child)]


# -- damage -----------------------------------------------------------------------------------------------------


def test_damage_is_named_and_made_again(folder, done, tmp_path):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    names = sorted((place / "shards").iterdir())
    data = bytearray(names[0].read_bytes())
    data[len(data) // 2] ^= 1
    names[0].write_bytes(bytes(data))
    names[1].write_bytes(names[1].read_bytes()[:-40])  # torn
    found = verify(place_of(place))
    assert {each.file for each in found.damage} == {f"shards/{name.name}" for name in names[:2]}
    with pytest.raises(InputError, match="is damaged: its checksum does not fit.*raison store repair"):
        list(records(place_of(place)))
    said = repair(place_of(place))
    assert len(said) == 2 and "its end was cut off" in said[1] and (place / "damaged" / names[0].name).is_file()
    run(place, resume=True)
    assert verify(place_of(place)).whole and parquet_of(place) == parquet_of(done)


def test_compacting_loses_nothing_even_if_it_is_killed(folder, done, tmp_path, monkeypatch):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    where = place_of(place)
    monkeypatch.setattr(Local, "delete", lambda self, name: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        compact(where)
    monkeypatch.undo()
    assert verify(where).whole and verify(where).records == 120  # there twice, read once
    before, after = compact(where)
    assert after == 1 and len(list((place / "shards").iterdir())) == 1 and before >= 1
    assert parquet_of(place) == parquet_of(done)
    assert run(place, resume=True).state == "done"


def test_a_second_driver_is_refused(folder, tmp_path):
    place = place_of(tmp_path / "r")
    with owned(place), pytest.raises(InputError, match="is being driven by process"), owned(place_of(tmp_path / "r")):
        pass
    run(tmp_path / "r", spec_of(folder, limit=3))  # a lock that was let go is not in the way


def test_full_disks_and_readonly_folders_are_told(folder, done, tmp_path, monkeypatch):
    plain = os.replace
    calls = {"count": 0}

    def full(source, target):
        if "shards" in str(target):
            calls["count"] += 1
            if calls["count"] == 3:
                raise OSError(28, "No space left on device")
        return plain(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Unwritten, match=r"No space left on device\): mend that, and resume the run"):
        run(tmp_path / "r", spec_of(folder))
    monkeypatch.undo()
    assert len(done_shards(place_of(tmp_path / "r"))) == 2
    assert status_of(place_of(tmp_path / "r")).state in ("failed", "stopped")
    run(tmp_path / "r", resume=True)
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(Unwritten, match="can't be written"):
        run(blocked / "r", spec_of(folder))


def test_another_model_or_library_is_refused(folder, tmp_path):
    place = tmp_path / "r"
    run(place, spec_of(folder))
    shard = next((place / "shards").iterdir())
    shard.unlink()
    told = json.loads((place / "environment.json").read_text())
    for name, value in (("torch", "1.0"), ("model", "0" * 32)):
        (place / "environment.json").write_text(json.dumps({**told, name: value}))
        with pytest.raises(InputError, match=f"begun with another {name}"):
            run(place, resume=True)
    with pytest.raises(ModelError, match="another model than the run was begun with"):
        run(place, resume=True, means=Means(workers=2))
    (place / "environment.json").write_text(json.dumps(told))
    assert run(place, resume=True).state == "done"


def test_clocks_may_jump(folder, done, tmp_path, monkeypatch):
    now = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: next(now))
    assert run(tmp_path / "r", spec_of(folder)).state == "done"
    monkeypatch.undo()
    assert parquet_of(tmp_path / "r") == parquet_of(done)


# -- texts that can't be explained --------------------------------------------------------------------------------


@pytest.mark.full
def test_a_poison_text_is_given_up_and_the_run_goes_on(folder, done, tmp_path, monkeypatch):
    """A method that ends its process at one text, and one that never comes back from another."""
    texts = [row.example.text for row in records(place_of(done)) if row.method == METHODS[0]]
    (tmp_path / "poison.py").write_text(
        "import os, time\n"
        "from raison.runs import worker\n"
        "plain = worker.Worker.explain\n"
        "def explain(self, texts):\n"
        f"    if any(t.example.text == {texts[5]!r} for t in texts): os._exit(3)\n"
        f"    if any(t.example.text == {texts[20]!r} for t in texts): time.sleep(60)\n"
        "    return plain(self, texts)\n"
        "worker.Worker.explain = explain\n"
    )
    from raison.runs import pool

    monkeypatch.setattr(pool, "serve", poisoned_serve)
    monkeypatch.setenv("POISON", str(tmp_path / "poison.py"))
    status = run(tmp_path / "r", spec_of(folder, chunk_tokens=40), Means(workers=2, timeout=1.5))
    assert status.state == "done" and status.failed == 2 * len(METHODS)
    failed = {r.example.text: r.failure.reason for r in records(place_of(tmp_path / "r")) if r.failure is not None}
    assert failed == {texts[5]: "it ended with code 3", texts[20]: "it took too long"}
    assert len(list(records(place_of(tmp_path / "r")))) == 120
    rows = query(place_of(tmp_path / "r"), "select count(*) from explanations where failed is null")[1]
    assert rows == [(116,)]


def poisoned_serve(pipe, where, spec, means):
    exec(compile(Path(os.environ["POISON"]).read_text(), "poison", "exec"), {})
    from raison.runs.pool import serve

    serve(pipe, where, spec, means)


def test_what_deaths_teach(tmp_path, folder):
    run(tmp_path / "r", spec_of(folder, limit=20))
    place, queue = place_of(tmp_path / "r"), Queue([])
    own = Death(0, 1, -1, "it ended with code 3", outside=False)
    assert "done again" in queue.learn(own, place) and "one by one" in queue.learn(own, place)
    assert queue.careful[0].single == {1} and queue.shards == [0, 0]
    single = Death(0, 1, 2, "it ended with code 3", outside=False)
    queue.learn(single, place)
    assert "is given up after 2 tries" in queue.learn(single, place) and 2 in queue.careful[0].poison
    other = Queue([])
    for _ in range(4):  # somebody kills workers: that is not the text's fault
        other.learn(Death(0, 1, -1, "it was ended by SIGKILL", outside=True), place)
    assert not other.careful[0].single


def test_too_little_memory_takes_fewer_texts(folder, done, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def greedy(self, texts):
        if len(texts) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return plain(self, texts)

    monkeypatch.setattr(Worker, "explain", greedy)
    status = run(tmp_path / "r", spec_of(folder))
    assert status.failed == 0 and "half as many were taken" in status.notices[-1]
    assert len(list(records(place_of(tmp_path / "r")))) == 120


def test_texts_that_can_not_be_read_are_recorded(folder, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def picky(self, texts):
        if any("7" in text.example.text for text in texts):
            raise InputError("The text has a seven.")
        return plain(self, texts)

    monkeypatch.setattr(Worker, "explain", picky)
    run(tmp_path / "r", spec_of(folder))
    failed = [r for r in records(place_of(tmp_path / "r")) if r.failure is not None]
    assert failed and all(r.failure == Failure("The text has a seven.", tries=1) for r in failed)
    assert all("7" in r.example.text for r in failed)


# -- the rest -----------------------------------------------------------------------------------------------------


def test_plans_are_dealt_by_tokens(folder, done):
    place = place_of(done)
    header = header_of(place)
    seen: list[int] = []
    for number in range(header.shards):
        shard = shard_of(place, number)
        assert sum(text.tokens for text in shard.texts) <= 250 or len(shard.texts) == 1
        for chunk in shard.chunks:
            assert sum(shard.texts[k].tokens for k in chunk) <= 80 or len(chunk) == 1
        assert [k for chunk in shard.chunks for k in chunk] == list(range(len(shard.texts)))
        lengths = [text.tokens for text in shard.texts]
        assert lengths == sorted(lengths, reverse=True)
        seen += [text.index for text in shard.texts]
    assert sorted(seen) == list(range(60))


def test_runs_at_a_url(folder, done):
    status = run("memory://raison-test/r", spec_of(folder))
    assert status.state == "done"
    place = place_of("memory://raison-test/r")
    assert verify(place).whole and verify(place).records == 120
    first = sorted(place.names("shards"))[0]
    assert place.get(f"shards/{first}") == (done / "shards" / first).read_bytes()


def test_specs(tmp_path, folder):
    file = tmp_path / "spec.toml"
    file.write_text('model = "sentiment"\ndata = "sst2"\nmethods = ["leave_one_out"]\nlimit = 5\n')
    assert read_spec(file, limit=7).limit == 7 and read_spec(file).methods == ("leave_one_out",)
    for text, sentence in (
        ("modle = 3", r"no setting 'modle'\. Did you mean 'model'"), ('data = "x"', "names no model"),
        ('model = ""\ndata = "x"', "needs a model"), ("model = [", "is no TOML"),
        ('model = "m"\ndata = "d"\ntarget = "best"', "target is"),
        ('model = "m"\ndata = "d"\nmethods = []', "at least one"),
        ('model = "m"\ndata = "d"\nlimit = 0', "limit"),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(InputError, match=sentence):
            read_spec(file)
    with pytest.raises(InputError, match="no file"):
        read_spec(tmp_path / "none.toml")
    for wrong in ({"workers": 0}, {"timeout": -1}, {"memory": 0}, {"gpus": -1}):
        with pytest.raises(InputError):
            Means(**wrong)
    with pytest.raises(InputError, match="is no run"):
        status_of(place_of(tmp_path / "nothing"))


def test_the_command_line(folder, tmp_path):
    assemble()
    place = str(tmp_path / "r")
    args = ["run", "--out", place, "-m", str(folder / "model"), "-d", str(folder / "data.csv"), "-M", "leave_one_out"]
    told = CliRunner().invoke(app, [*args, "--metric", "comprehensiveness", "--limit", "12"])
    assert told.exit_code == 0 and "12 of 12 texts are explained" in told.output
    assert "state: done" in CliRunner().invoke(app, ["status", place]).output
    assert json.loads(CliRunner().invoke(app, ["status", place, "--json"]).output)["shards_done"] > 0
    assert "12 records" in CliRunner().invoke(app, ["store", "verify", place]).output
    assert "Nothing is damaged" in CliRunner().invoke(app, ["store", "repair", place]).output
    shown = CliRunner().invoke(app, ["report", place, "--out", str(tmp_path / "page.html")])
    assert shown.exit_code == 0 and "comprehensiveness" in shown.output and (tmp_path / "page.html").is_file()
    asked = CliRunner().invoke(app, ["store", "query", place, "select method, count(*) n from explanations group by 1"])
    assert "leave_one_out" in asked.output and "12" in asked.output
    wrong = CliRunner().invoke(app, ["store", "query", place, "select nonsense from explanations"])
    assert wrong.exit_code == 2 and "can't be answered" in wrong.output
    assert CliRunner().invoke(app, ["store", "export", place, str(tmp_path / "t.parquet")]).exit_code == 0
    out = ["run", "--out", str(tmp_path / "new")]
    for words, missing in (
        (["-d", "reviews"], "add -m MODEL"), (["-m", "sentiment"], "add -d DATA"), ([], "add -m MODEL"),
        (["-M", "random", "--resume"], "add -m MODEL"),
    ):  # fmt: skip
        told = CliRunner().invoke(app, [*out, *words])
        assert told.exit_code == 2 and missing in told.output and 'model = "' not in told.output
        assert not (tmp_path / "new").exists()
    for bad in (["run", "--out", place], ["run"], [*args, "--limit", "12"], ["status", str(tmp_path / "none")]):
        result = CliRunner().invoke(app, bad)
        assert result.exit_code in (1, 2) and "Traceback" not in result.output
    shard = next((tmp_path / "r" / "shards").iterdir())
    shard.write_bytes(shard.read_bytes()[:-5])
    assert CliRunner().invoke(app, ["store", "verify", place]).exit_code == 1


@pytest.mark.parametrize("means", [Means(), pytest.param(Means(workers=2), marks=pytest.mark.full)])
def test_all_explanations_are_counted_whenever_they_were_made(folder, tmp_path, means):
    spec = spec_of(folder, limit=12, metrics=(), shard_tokens=40)
    status = run(tmp_path / "r", spec, means)
    assert status.explanations == 12 * len(METHODS)
    for path in shards_of(tmp_path / "r")[:2]:
        path.unlink()
    left = status_of(place_of(tmp_path / "r"))
    assert left.explanations == sum(len(r.explanations) for r in records(place_of(tmp_path / "r")))
    assert left.explanations < status.explanations
    for _ in range(2):  # the second time there is nothing to do
        assert run(tmp_path / "r", means=means, resume=True).explanations == 12 * len(METHODS)
        assert status_of(place_of(tmp_path / "r")).explanations == 12 * len(METHODS)
    compact(place_of(tmp_path / "r"))
    (tmp_path / "r" / "status.json").unlink()
    assert status_of(place_of(tmp_path / "r")).explanations == 12 * len(METHODS)


# -- what a hostile review found ------------------------------------------------------------------------------------


@pytest.fixture
def copied(done, tmp_path) -> Path:
    place = tmp_path / "copy"
    shutil.copytree(done, place)
    return place


def shards_of(place: Path) -> list[Path]:
    return sorted((place / "shards").iterdir())


def test_compacting_never_takes_a_name_that_is_taken(copied, done):
    away = copied / "away"
    away.mkdir()
    late = shards_of(copied)[2:]
    for path in late:
        path.rename(away / path.name)
    compact(place_of(copied))
    for path in late:
        (away / path.name).rename(path)
    compact(place_of(copied))
    first, second = shards_of(copied)
    first.unlink()  # as if it had been put aside
    run(copied, resume=True)
    compact(place_of(copied))
    assert second in shards_of(copied) and verify(place_of(copied)).records == verify(place_of(done)).records
    assert parquet_of(copied) == parquet_of(done)


def test_bytes_do_not_depend_on_what_was_compacted(copied, done):
    path = shards_of(copied)[1]
    data = path.read_bytes()
    path.unlink()
    compact(place_of(copied))
    path.write_bytes(data)
    assert verify(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


def test_a_torn_compacted_file_is_no_empty_run(copied, done):
    compact(place_of(copied))
    (path,) = shards_of(copied)
    path.write_bytes(path.read_bytes()[:-40])
    assert not verify(place_of(copied)).whole
    with pytest.raises(InputError, match="torn"):
        list(records(place_of(copied)))
    compact(place_of(copied))
    assert path.exists()
    (said,) = repair(place_of(copied))
    assert "cut off" in said
    run(copied, resume=True)
    assert parquet_of(copied) == parquet_of(done)


def test_what_verify_finds_repair_mends(copied, done):
    first, second = shards_of(copied)[:2]
    first.write_bytes(second.read_bytes())
    (copied / "shards" / "000001 copy.jsonl").write_bytes(b"x")
    assert {each.file for each in verify(place_of(copied)).damage} >= {
        f"shards/{first.name}",
        "shards/000001 copy.jsonl",
    }
    repair(place_of(copied))
    run(copied, resume=True)
    assert verify(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


def test_a_damaged_plan_is_told(copied):
    plans = sorted((copied / "plan").glob("0*.jsonl"))
    plans[1].write_bytes(plans[0].read_bytes())
    assert [each.file for each in verify(place_of(copied)).damage] == [f"plan/{plans[1].name}"]
    assert "can't be mended" in repair(place_of(copied))[0]
    shards_of(copied)[1].unlink()
    with pytest.raises(InputError, match="damaged .*another shard's"):
        run(copied, resume=True)
    header = copied / "plan" / "header.json"
    told = json.loads(header.read_text())
    header.write_text(json.dumps({**told, "shards": 2}))
    with pytest.raises(InputError, match="The plan of .* is damaged"):
        run(copied, resume=True)
    header.unlink()
    with pytest.raises(InputError, match="results but no plan"):
        run(copied, resume=True)


@pytest.mark.parametrize("data", [b"", b"garbage", b"[]", b"null", None])
def test_a_lost_environment_is_told(copied, data):
    path = copied / "environment.json"
    path.unlink() if data is None else path.write_bytes(data)
    shards_of(copied)[0].unlink()
    for action in (lambda: verify(place_of(copied)), lambda: run(copied, resume=True, means=Means(workers=2))):
        with pytest.raises(InputError, match="environment.json .* missing or damaged"):
            action()


def test_strange_files_of_status_and_spec(copied):
    for content in ("[]", "null", '"x"', '{"notices": 5}', "{"):
        (copied / "status.json").write_text(content)
        assert status_of(place_of(copied)).shards_done == len(shards_of(copied))
    (copied / "spec.json").write_text("null")
    with pytest.raises(InputError, match="spec of .* is damaged"):
        verify(place_of(copied))


def changed_normalizer(rules: dict, settings: dict) -> None:
    rules["normalizer"] = {"type": "Replace", "pattern": {"String": "e"}, "content": "a"}


def added_word(rules: dict, settings: dict) -> None:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    rules["added_tokens"].append({"id": max(rules["model"]["vocab"].values()), "content": "lovely film", **plain})


def shorter_texts(rules: dict, settings: dict) -> None:
    settings["model_max_length"] = 8


def another_unknown(rules: dict, settings: dict) -> None:
    settings["unk_token"] = "[PAD]"


def cut_on_the_left(rules: dict, settings: dict) -> None:
    settings["truncation_side"] = "left"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize("change", [changed_normalizer, added_word, shorter_texts, another_unknown, cut_on_the_left])
def test_another_tokenizer_or_setting_of_it_is_another_model(folder, tmp_path, change, workers):
    shutil.copytree(folder / "model", tmp_path / "model")
    spec = spec_of(folder, model=str(tmp_path / "model"), limit=10, methods=("gradient_norm",), metrics=())
    run(tmp_path / "r", spec)
    files = [tmp_path / "model" / name for name in ("tokenizer.json", "tokenizer_config.json")]
    rules, settings = (json.loads(file.read_text()) for file in files)
    change(rules, settings)
    for file, content in zip(files, (rules, settings), strict=True):
        file.write_text(json.dumps(content))
    shards_of(tmp_path / "r")[0].unlink()
    with pytest.raises(RaisonError, match="begun with"):
        run(tmp_path / "r", resume=True, means=Means(workers=workers))


def test_a_moved_model_and_moved_data_are_known_by_what_they_hold(folder, done, tmp_path):
    first, then = tmp_path / "first", tmp_path / "then"
    for place in (first, then):
        place.mkdir()
    shutil.copytree(folder / "model", first / "model")
    shutil.copy(folder / "data.csv", first / "data.csv")
    run(tmp_path / "r", spec_of(first))
    (first / "model").rename(then / "renamed")
    (first / "data.csv").rename(then / "texts.csv")
    moved = spec_of(folder, model=str(then / "renamed"), data=str(then / "texts.csv"))
    missing = shards_of(tmp_path / "r")[:2]
    for path in missing:
        path.unlink()

    for means in (Means(), Means(workers=2)):  # where it was, it is missed; the way out is told
        with pytest.raises(ModelError, match=r"There is no model folder .*go on with --resume -m and its new place\.$"):
            run(tmp_path / "r", resume=True, means=means)
    assemble()
    words = ["run", "--out", str(tmp_path / "r"), "--resume", "-m", moved.model, "-d", moved.data]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    missing[0].unlink()
    assert run(tmp_path / "r", resume=True).state == "done"  # it is known there from now on
    found = verify(place_of(tmp_path / "r"))
    assert found.whole and not found.missing
    assert parquet_of(tmp_path / "r") == parquet_of(done)


def test_another_model_or_other_data_in_a_new_place_are_refused(folder, copied, tmp_path):
    shards_of(copied)[0].unlink()
    hf, tokenizer = tiny_hf("bert", "classification")
    other = copy.deepcopy(hf).float()
    next(other.parameters()).data[0, 0] += 1
    other.save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    rows = (folder / "data.csv").read_text().splitlines()
    for name, lines_ in (("longer", [*rows, "one more,positive"]), ("turned", [rows[0], *rows[:0:-1]])):
        (tmp_path / f"{name}.csv").write_text("\n".join(lines_))
    before = {path.name: path.read_bytes() for path in copied.glob("*.json")}
    for means in (Means(), Means(workers=2)):
        with pytest.raises(InputError, match="begun with another model"):
            run(copied, spec_of(folder, model=str(tmp_path / "other")), means, resume=True)
    for name in ("longer", "turned"):
        data = str(tmp_path / f"{name}.csv")
        with pytest.raises(InputError, match="holds other texts than"):
            run(copied, spec_of(folder, data=data), resume=True)
    with pytest.raises(InputError, match="another seed"):
        run(copied, spec_of(folder, model=str(tmp_path / "other"), seed=3), resume=True)
    with pytest.raises(InputError, match="is a run with another units"):
        assemble()
        told = CliRunner().invoke(app, ["run", "--out", str(copied), "--resume", "--units", "token"])
        raise InputError(told.output)
    assert {path.name: path.read_bytes() for path in copied.glob("*.json")} == before


def test_a_plan_without_a_fingerprint_is_of_an_earlier_raison(folder, copied):
    path = copied / "plan" / "header.json"
    told = json.loads(path.read_text())
    path.write_bytes(header_bytes({k: v for k, v in told.items() if k not in ("sum", "fingerprint")}))
    assert run(copied, resume=True).state == "done"
    with pytest.raises(InputError, match="before raison kept a fingerprint"):
        run(copied, spec_of(folder, data=str(copied / "none.csv")), resume=True)


def test_the_same_text_with_another_label_is_no_damage(folder, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\ngood film,positive\ngood film,negative\nbad film,negative\n")
    data = f"{tmp_path / 'a.csv'}(text=text, label=label)"
    run(tmp_path / "r", RunSpec(str(folder / "model"), data, ("gradient_norm",)))
    found = verify(place_of(tmp_path / "r"))
    assert found.whole and found.records == 3


def test_failures_are_not_forgotten_and_can_be_tried_again(folder, done, tmp_path, monkeypatch):
    from raison.runs.worker import Worker

    plain = Worker.explain

    def tired(self, texts):
        if any(text.index == 3 for text in texts):
            raise RuntimeError("could not do it")
        return plain(self, texts)

    with monkeypatch.context() as patched:
        patched.setattr(Worker, "explain", tired)
        assert run(tmp_path / "r", spec_of(folder)).failed == len(METHODS)
    assert run(tmp_path / "r", resume=True).failed == len(METHODS)
    assert run(tmp_path / "r", resume=True, retry=True).failed == 0
    assert parquet_of(tmp_path / "r") == parquet_of(done)
    assert out_of_memory(RuntimeError("could not create a primitive descriptor"))


def test_what_can_not_work_is_told_before_anything_is_written(folder, tmp_path):
    with pytest.raises(RaisonError, match="removal"):
        run(tmp_path / "a", spec_of(folder, removal="foo"))
    with pytest.raises(RaisonError):
        run(tmp_path / "b", spec_of(folder, model=str(tmp_path / "none")))
    for name in ("a", "b"):  # so that the folder is free for a spec that works
        run(tmp_path / name, spec_of(folder, limit=5))
    for wrong, why in (({"methods": 5}, "list of names"), ({"skip_broken": "no"}, "true or false")):
        with pytest.raises(InputError, match=why):
            spec_of(folder, **wrong)
    assemble()
    none = str(tmp_path / "mistyped")
    for command in ("repair", "compact"):
        told = CliRunner().invoke(app, ["store", command, none])
        assert told.exit_code != 0 and not Path(none).exists()


def test_where_every_text_fails_the_command_does(folder, tmp_path):
    (tmp_path / "a.csv").write_text("text\none\ntwo\n")
    assemble()
    command = [
        "run",
        "--out",
        str(tmp_path / "r"),
        "-m",
        str(folder / "model"),
        "-d",
        f"{tmp_path / 'a.csv'}(text=text)",
    ]
    told = CliRunner().invoke(app, [*command, "-M", "gradient_norm", "--target", "gold"])
    assert told.exit_code != 0


def test_a_question_reads_the_table_and_nothing_else(copied, tmp_path):
    place = place_of(copied)
    assert query(place, "select count(*) from explanations")[1] == [(120,)]
    (tmp_path / "secret.csv").write_text("a\n1\n")
    other = tmp_path / "secret.csv"
    for sql in (
        f"copy (select 1) to '{tmp_path / 'x.csv'}'", f"attach '{tmp_path / 'x.db'}' as x", "", "select 1; select 2",
        f"select * from read_csv('{other}')", f"select * from '{other}'", "install httpfs", "selec 1",
    ):  # fmt: skip
        with pytest.raises(InputError):
            query(place, sql)
    assert not (tmp_path / "x.csv").exists() and not (tmp_path / "x.db").exists()
    shards_of(copied)[0].unlink()
    assert query(place, "select count(*) from explanations")[1][0][0] < 120
    with pytest.raises(InputError, match="is a folder"):
        export(place, tmp_path)
