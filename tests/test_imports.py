"""Imports go one way, and the heavy ones come late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import SOURCE

MODELS = {"core", "models"}
METHODS = MODELS | {"methods", "rationales"}
ENGINE = METHODS | {"engine"}
TRAINING = MODELS | {"datasets", "training"}
STUDIES = ENGINE | TRAINING | {"metrics", "api", "attention_models", "rationalizers"}
# A room may import from itself and from these (ARCHITECTURE.md).
MAY_IMPORT: dict[str, set[str]] = {
    "core": set(),
    "datasets": {"core"},
    "show": {"core"},
    "page": set(),
    "models": {"core"},
    "methods": MODELS,
    "rationales": METHODS,
    "metrics": MODELS | {"methods"},
    "engine": METHODS,
    "api": ENGINE,
    "training": MODELS | {"datasets"},
    "attention_models": TRAINING,
    "rationalizers": TRAINING,
    "studies": STUDIES,
    "runs": STUDIES | {"studies", "__init__"},
    "web": STUDIES | {"studies", "runs", "show", "__init__"},
    "testing": ENGINE | {"api"},
    "cli": STUDIES | {"studies", "runs", "web", "show", "__init__"},
    "__init__": {"core", "api", "studies", "show"},
    "__main__": {"cli"},
}
USE_TRANSFORMERS = {"models", "attention_models", "rationalizers", "training", "testing"}
WITHOUT_TORCH = {"core", "show", "datasets", "cli"}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def modules_imported_by(path: Path) -> set[str]:
    """Modules named by import statements anywhere in a file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "raison":  # `from raison import progress` is about progress
                names |= {f"raison.{alias.name}" for alias in node.names}
            else:
                names.add(node.module or "")
    return names


def rooms_imported_by(path: Path) -> set[str]:
    rooms = set()
    for name in modules_imported_by(path):
        package, _, rest = name.partition(".")
        if package == "raison":
            room = rest.partition(".")[0] or "__init__"
            rooms.add(
                room if room in MAY_IMPORT else "__init__"
            )  # `from raison import load` names no room
    return rooms


def test_imports_go_one_way():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        room = room_of(path)
        strange = rooms_imported_by(path) - {room} - MAY_IMPORT[room]
        if strange:
            wrong.append(f"{path.relative_to(SOURCE)} must not import {', '.join(sorted(strange))}")
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_in_their_rooms():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        room = room_of(path)
        libraries = {name.partition(".")[0] for name in modules_imported_by(path)}
        if "transformers" in libraries and room not in USE_TRANSFORMERS:
            wrong.append(f"{path.relative_to(SOURCE)} imports transformers")
        if "torch" in libraries and room in WITHOUT_TORCH:
            wrong.append(f"{path.relative_to(SOURCE)} imports torch")
    assert not wrong, "\n".join(wrong)


def libraries_loaded_by(code: str) -> set[str]:
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.split(".")[0] for name in found.stdout.split()}


@pytest.mark.parametrize(
    "code",
    [
        "import raison, raison.core.records, raison.core.units, raison.core.registry; raison.Example('x')",
        "import raison.show",
        "from raison.models import catalog; catalog.catalog_entries()",
        "import raison.cli.app, raison.cli.explain, raison.cli.ls",
    ],
)
def test_light_parts_need_no_torch(code):
    assert not {"torch", "transformers"} & libraries_loaded_by(code)
