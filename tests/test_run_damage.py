"""Run folders that somebody else has touched: what does not belong there is named, and nothing good is thrown away."""

from __future__ import annotations

import json
import shutil
import threading
import time

import pytest
from typer.testing import CliRunner

from raison.cli.app import app, assemble
from raison.core import progress
from raison.core.errors import InputError, RaisonError
from raison.core.records import Example
from raison.runs import export as exporting
from raison.runs import lines, lock
from raison.runs.driver import run
from raison.runs.export import export, query
from raison.runs.identity import method_identity
from raison.runs.lock import owned
from raison.runs.plan import Planned, Planner, header_of
from raison.runs.report import report
from raison.runs.spec import Means, RunSpec, read_spec
from raison.runs.status import status_of
from raison.runs.storage import Local, place_of
from raison.runs.store import compact, records, repair, verify
from raison.studies.method_lists import method_list
from tests.test_runs import copied, done, folder, parquet_of, shards_of, spec_of  # noqa: F401

runner = CliRunner()


@pytest.fixture(scope="module")
def other(folder, tmp_path_factory):  # noqa: F811
    """Another run, by the same model."""
    place = tmp_path_factory.mktemp("runs") / "other"
    (place.parent / "texts.csv").write_text("text\n" + "\n".join(f"the plot of film {k} is dull" for k in range(30)))
    run(place, spec_of(folder, data=str(place.parent / "texts.csv"), metrics=(), methods=("occlusion",)))
    return place


def counts_of(place):
    return header_of(place_of(place)).counts


# -- what belongs to a run ------------------------------------------------------------------------------------------


def test_a_shard_of_another_run_is_told(folder, copied, done, other):  # noqa: F811
    shutil.copy(other / "shards" / "000000.jsonl", copied / "shards" / "000000.jsonl")
    found = verify(place_of(copied))
    assert {each.file for each in found.damage} == {"shards/000000.jsonl"}
    for wanted in (lambda: list(records(place_of(copied))), lambda: report(place_of(copied))):
        with pytest.raises(InputError, match="raison store repair"):
            wanted()
    assert "damaged/" in repair(place_of(copied))[0]
    run(copied, resume=True)
    assert parquet_of(copied) == parquet_of(done)


def test_a_shard_of_the_right_size_is_held_against_the_plan(copied, done):  # noqa: F811
    path = shards_of(copied)[0]
    found = list(lines.read(path.read_bytes(), "x").records())
    path.write_bytes(lines.packed(found[::-1], [0]))
    damage = verify(place_of(copied)).damage
    assert {each.file for each in damage} == {"shards/000000.jsonl"} and "what the plan has" in str(damage[0])


def test_a_shard_beyond_the_plan_is_told(copied):  # noqa: F811
    found = lines.read(shards_of(copied)[0].read_bytes(), "x")
    (copied / "shards" / "000099.jsonl").write_bytes(lines.packed(found.records(), [99]))
    assert "the plan has none of that number" in str(verify(place_of(copied)).damage[0])
    assert status_of(place_of(copied))["shards_done"] == header_of(place_of(copied)).shards
    with pytest.raises(InputError, match=r"holds a shard 99.*raison store repair"):
        run(copied, resume=True)
    with pytest.raises(InputError, match="none of that number"):
        compact(place_of(copied))
    repair(place_of(copied))
    assert verify(place_of(copied)).whole and run(copied, resume=True).state == "done"


def test_swapped_shards_are_never_exported(copied):  # noqa: F811
    one, two = shards_of(copied)[:2]
    data = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(data)
    with pytest.raises(InputError, match="says that it holds the shards"):
        parquet_of(copied)


def test_a_lost_spec_is_told(folder, copied):  # noqa: F811
    (copied / "spec.json").unlink()
    for resume in (False, True):
        with pytest.raises(InputError, match=r"spec.json .* is missing: put it back"):
            run(copied, spec_of(folder, methods=("occlusion",)), resume=resume)


def test_verify_reads_headers_and_costs_too(copied, done):  # noqa: F811
    cost = next((copied / "costs").glob("*.jsonl"))
    data = bytearray(cost.read_bytes())
    data[40] ^= 1
    cost.write_bytes(data)
    assert [each.file for each in verify(place_of(copied)).damage] == [f"costs/{cost.name}"]
    assert "what these results took is lost" in repair(place_of(copied))[0]
    assert verify(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)
    header = copied / "plan" / "header.json"
    told = json.loads(header.read_text())
    header.write_text(json.dumps({**told, "gold_share": 0.5}))
    with pytest.raises(InputError, match=r"plan .* is damaged"):
        verify(place_of(copied))
    header.unlink()
    assert "plan/header.json" in [each.file for each in verify(place_of(copied)).damage]
    with pytest.raises(InputError, match="has results but no plan"):
        status_of(place_of(copied))


def test_status_tells_what_is_there(copied):  # noqa: F811
    whole = status_of(place_of(copied))
    assert whole["state"] == "done" and whole["texts_done"] == whole["texts"]
    shards_of(copied)[0].write_bytes(b"")
    repair(place_of(copied))
    told = status_of(place_of(copied))
    assert told["state"] == "stopped" and told["shards_done"] == whole["shards"] - 1
    assert told["texts_done"] == whole["texts"] - counts_of(copied)[0] and told["seconds_left"] is None


def test_compacting_keeps_the_only_good_copies(copied, done):  # noqa: F811
    compact(place_of(copied))
    for path in shards_of(done):
        shutil.copy(path, copied / "shards")
    packed = next((copied / "shards").glob("compact-*"))
    data = bytearray(packed.read_bytes())
    data[500] ^= 1
    packed.write_bytes(data)
    with pytest.raises(InputError, match="its checksum does not fit"):
        compact(place_of(copied))
    repair(place_of(copied))
    assert verify(place_of(copied)).whole and parquet_of(copied) == parquet_of(done)


# -- files that methods name ----------------------------------------------------------------------------------------


@pytest.fixture
def tabled(folder, tmp_path, monkeypatch):  # noqa: F811
    """A run by a method that names a file, from the folder in which the file is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.txt").write_text("a lovely film\nthe story is dull\n" * 20)
    assemble()
    assert runner.invoke(app, ["idf", "--data", "corpus.txt", "--out", "tab.json"]).exit_code == 0
    run("run", spec_of(folder, methods=("idf(table='tab.json')",), metrics=()))
    return tmp_path


def test_another_table_is_refused(tabled, folder):  # noqa: F811
    path = tabled / "run" / "shards" / "000000.jsonl"
    path.unlink()
    old = (tabled / "tab.json").read_bytes()
    (tabled / "corpus.txt").write_text("a\nlovely story\n" * 9)
    (tabled / "tab.json").unlink()
    assert runner.invoke(app, ["idf", "--data", "corpus.txt", "--out", "tab.json"]).exit_code == 0
    for workers in (1, 2):
        with pytest.raises(InputError, match="A file that a method .* names is another one now"):
            run("run", means=Means(workers=workers), resume=True)
    (tabled / "tab.json").unlink()
    with pytest.raises(InputError, match=r"'tab.json', which idf names, can't be read"):
        run("run", resume=True)
    with pytest.raises(InputError, match="can't be read"):
        run("new", spec_of(folder, methods=("idf(table='tab.json')",)))
    assert not (tabled / "new" / "spec.json").exists()
    (tabled / "tab.json").write_bytes(old)
    assert run("run", resume=True).state == "done"


def test_verifying_does_not_depend_on_where_one_stands(tabled, folder, monkeypatch):  # noqa: F811
    away = tabled / "away"
    away.mkdir()
    (away / "start").write_text("a file that is called like a setting")
    run("second", spec_of(folder, methods=("position(favours='start')",), metrics=()))
    monkeypatch.chdir(away)
    for name in ("run", "second"):
        assert verify(place_of(tabled / name)).whole and not repair(place_of(tabled / name))


def test_a_file_behind_another_method_counts(tabled):
    one = method_identity(method_list(["by_order(method=idf(table='tab.json'))"])[0])
    (tabled / "tab.json").write_text((tabled / "tab.json").read_text() + " ")
    assert method_identity(method_list(["by_order(method=idf(table='tab.json'))"])[0]) != one


def test_a_changed_spec_moves_no_result(copied):  # noqa: F811
    told = json.loads((copied / "spec.json").read_text())
    (copied / "spec.json").write_text(json.dumps({**told, "seed": 7}))
    before = shards_of(copied)
    assert [each.file for each in verify(place_of(copied)).damage] == ["spec.json"]
    assert "nothing was moved" in repair(place_of(copied))[0] and shards_of(copied) == before


def test_a_refused_retry_moves_nothing(folder, tmp_path):  # noqa: F811
    (tmp_path / "texts.jsonl").write_text('{"text": "a \\ud800 film"}\n{"text": "a dull story"}\n')
    place = tmp_path / "run"
    assert run(place, spec_of(folder, data=str(tmp_path / "texts.jsonl"), metrics=())).failed
    before = shards_of(place)
    with pytest.raises(InputError, match="another threads"):
        run(place, means=Means(threads=2), resume=True, retry=True)
    assert shards_of(place) == before


# -- texts that nobody can write ------------------------------------------------------------------------------------


def test_half_characters_can_be_exported(folder, tmp_path):  # noqa: F811
    rows = [{"text": "a \ud800 film"}, {"text": "a dull story", "id": "\ud800"}, {"text": "lovely", "label": "\udc00"}]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = tmp_path / "run"
    run(place, spec_of(folder, data=str(tmp_path / "texts.jsonl"), metrics=()))
    assert verify(place_of(place)).whole and export(place_of(place), tmp_path / "x.parquet") == 6
    _, found = query(place_of(place), "select distinct id, label, failed is null from explanations order by 1")
    assert len(found) == 3 and ("?", None, True) in found


def test_labels_that_are_no_numbers_are_broken_records(folder, tmp_path):  # noqa: F811
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "a film", "label": NaN}\n{"text": "dull", "meta": {"x": NaN}, "y": Infinity}\n')
    with pytest.raises(InputError, match=r"label of an example is nan, which is no number"):
        run(tmp_path / "one", spec_of(folder, data=str(path), metrics=()))
    ended = run(tmp_path / "two", spec_of(folder, data=str(path), metrics=(), skip_broken=True))
    assert (ended.state, ended.texts_done) == ("done", 1)
    with pytest.raises(InputError, match="target of an example is inf"):
        Example("a film", target=float("inf"))


# -- tables and questions -------------------------------------------------------------------------------------------


def test_columns_do_not_depend_on_the_first_rows(folder, tmp_path, monkeypatch):  # noqa: F811
    rows = ["a very " + "lovely " * 20 + "film,none of them", "a dull story,LABEL_1", "warm,LABEL_1"]
    (tmp_path / "texts.csv").write_text("text,label\n" + "\n".join(rows))
    place = tmp_path / "run"
    spec = spec_of(folder, data=str(tmp_path / "texts.csv"), methods=("gradient_norm",), target="gold")
    run(place, spec)
    monkeypatch.setattr(exporting, "GROUP", 1)
    _, found = query(place_of(place), "select count(*), count(failed), avg(comprehensiveness) from explanations")
    assert found[0][:2] == (3, 1) and found[0][2] is not None


def test_a_damaged_or_foreign_table_is_made_again(copied, other):  # noqa: F811
    ask = lambda: query(place_of(copied), "select count(*) from explanations")[1][0][0]  # noqa: E731
    count = ask()
    table = copied / "export" / "explanations.parquet"
    table.write_bytes(table.read_bytes()[:1000])
    assert ask() == count
    query(place_of(other), "select 1")
    shutil.copy(other / "export" / "explanations.parquet", table)
    assert ask() == count


def test_a_name_is_no_pattern(copied, other):  # noqa: F811
    odd = copied.parent / "run?"
    shutil.copytree(copied, odd)
    shutil.copytree(other, copied.parent / "runX")
    query(place_of(copied.parent / "runX"), "select 1")
    wanted = query(place_of(copied), "select count(*) from explanations")
    assert query(place_of(odd), "select count(*) from explanations") == wanted


def test_answers_are_json(copied):  # noqa: F811
    assemble()
    sql = "select 1 as a, 2 as a, 'nan'::double as b, ['nan'::double] as c"
    found = runner.invoke(app, ["store", "query", str(copied), sql, "--json"])
    assert json.loads(found.stdout) == [{"a": 1, "a_2": 2, "b": None, "c": [None]}]


def test_an_export_into_a_file_names_what_was_asked_for(copied, tmp_path):  # noqa: F811
    (tmp_path / "afile").write_text("x")
    with pytest.raises(RaisonError, match="afile/x.parquet' could not be written"):
        export(place_of(copied), tmp_path / "afile" / "x.parquet")


# -- drivers at a URL -----------------------------------------------------------------------------------------------


def test_a_file_url_is_a_folder(copied):  # noqa: F811
    for kind in ("file://", "local://"):
        place = place_of(f"{kind}{copied}")
        assert isinstance(place, Local) and place.root == copied


def test_of_two_drivers_that_begin_at_once_one_is_refused(monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.1)
    began, refused = [], []

    def drive() -> None:
        try:
            with owned(place_of("memory://two/run")):
                began.append(1)
                time.sleep(0.6)
        except InputError:
            refused.append(1)

    for _ in range(3):
        began.clear()
        refused.clear()
        both = [threading.Thread(target=drive) for _ in range(2)]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert (len(began), len(refused)) == (1, 1)


def test_a_driver_that_slept_stops_and_leaves_the_lock(monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.2)
    place = place_of("memory://slept/run")
    with pytest.raises(InputError, match="driven by another driver"), owned(place):
        place.put("lock", b'{"owner": "somebody else", "beat": 0}')
        for _ in range(100):
            time.sleep(0.05)
            progress.check()  # as every batch does
    assert json.loads(place.get("lock"))["owner"] == "somebody else"


def test_asking_for_the_status_refuses_no_driver(copied):  # noqa: F811
    import fcntl

    file = open(copied / "lock")  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_SH)
    threading.Timer(0.06, file.close).start()
    with owned(place_of(copied)):
        pass


# -- specs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"units": "wrod"}, "units is token, word"),
        ({"units": ""}, "units is token, word"),
        ({"split": 7}, "split is a name"),
        ({"removal": ["a"]}, "removal is a name"),
    ],
)
def test_specs_that_can_not_work(folder, given, said):  # noqa: F811
    with pytest.raises(InputError, match=said):
        spec_of(folder, **given)


def test_more_that_can_not_work(tmp_path):
    for given in ({"threads": 10**10}, {"memory": 10**17}, {"workers": 10**9}):
        with pytest.raises(InputError, match="at most|up to"):
            Means(**given)
    for name in ("~nosuchuser/x", "reference://x", "data://x"):
        with pytest.raises(RaisonError):
            status_of(place_of(name))
    deep = tmp_path / "deep.toml"
    deep.write_text("a = " + "[" * 5000)
    with pytest.raises(InputError, match="is no TOML"):
        read_spec(deep)


def test_planning_many_texts_takes_a_time_for_each(tmp_path):
    """Twice as many texts take about twice as long, whatever the size of a shard."""
    texts = [Planned(k, 5, Example("a film", id=str(k))) for k in range(40_000)]

    def spent(count: int) -> float:
        planner = Planner(place_of(tmp_path), RunSpec("m", "d", shard_tokens=10**9), None)
        start = time.process_time()
        planner.deal(texts[:count])
        return time.process_time() - start

    assert min(spent(40_000) for _ in range(3)) < 12 * max(1e-3, min(spent(10_000) for _ in range(3)))
