"""What is published: a wheel and an sdist that hold all that raison needs, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.helpers.paths import ROOT

pytest.importorskip("hatchling")


SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    made = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_every_file_of_the_package_and_works_on_its_own(built, tmp_path):
    wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        archive.extractall(tmp_path)
    wanted = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "raison").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in held if ".dist-info/" not in name} == wanted
    assert any(name.endswith("py.typed") for name in held) and wheel.stat().st_size < 30e6
    (entry,) = tmp_path.glob("*.dist-info/entry_points.txt")
    assert "raison = raison.cli.app:main" in entry.read_text()
    told = subprocess.run(
        [sys.executable, "-c", "import raison; print(raison.__file__); from raison.cli.app import main; main()", "ls"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 0 and told.stdout.startswith(str(tmp_path)), told.stderr
    assert "integrated_gradients" in told.stdout


def test_the_sdist_is_enough_to_build_and_to_test(built):
    _, sdist = built
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "Makefile",
        "PKG-INFO",
    } <= held
    for folder in ("src/raison", "tests", "docs", "recipes", "benchmarks", "examples"):
        assert any(name.startswith(f"{folder}/") for name in held), folder
    assert not any("__pycache__" in name or name.startswith((".venv", "out/")) for name in held)
