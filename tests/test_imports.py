"""Imports go one way, and the heavy ones come late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "raison"

# A room may import from itself and from rooms that stand before it (ARCHITECTURE.md).
MAY_IMPORT = {
    "core": set(),
    "datasets": {"core"},
    "show": {"core"},
    "page": set(),
    "models": {"core"},
    "methods": {"core", "models"},
    "rationales": {"core", "models", "methods"},
    "api": {"core", "models", "methods", "rationales"},
    "metrics": {"core", "models", "methods"},
    "training": {"core", "models", "datasets"},
    "attention_models": {"core", "models", "datasets", "training"},
    "rationalizers": {"core", "models", "datasets", "training"},
    "studies": {"core", "models", "methods", "rationales", "metrics", "api", "datasets", "training"}
    | {"attention_models", "rationalizers"},
    "runs": {"core", "models", "methods", "rationales", "metrics", "api", "studies", "datasets", "__init__"},
    "web": {"core", "models", "methods", "rationales", "metrics", "api", "studies", "runs", "show", "__init__"},
    "testing": {"core", "models", "methods", "rationales", "api"},
    "cli": {"core", "models", "methods", "rationales", "metrics", "api", "studies", "datasets", "training"}
    | {"attention_models", "rationalizers", "show", "runs", "web", "__init__"},
    "__init__": {"core", "api", "studies", "show"},
    "__main__": {"cli"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Modules named by import statements anywhere in a file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            inside = node.module == "raison"  # `from raison import progress` is about progress
            names |= {f"raison.{alias.name}" for alias in node.names} if inside else {node.module or ""}
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    own = room(path)
    for name in imported(path):
        parts = name.split(".")
        if parts[0] != "raison":
            continue
        target = parts[1] if len(parts) > 1 else "__init__"
        if target not in MAY_IMPORT and target != own:  # `from raison import name` of something that is no room
            target = "__init__"
        assert target == own or target in MAY_IMPORT[own], f"{own} must not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_libraries_stay_in_their_rooms(path):
    names = {name.split(".")[0] for name in imported(path)}
    if room(path) not in ("models", "attention_models", "rationalizers", "training", "testing"):
        assert "transformers" not in names
    if room(path) in {"core", "show", "datasets", "cli"}:
        assert "torch" not in names


def loaded_by(code: str) -> set[str]:
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
        "from raison.models import catalog; catalog.entries()",
        "import raison.cli.app, raison.cli.explain, raison.cli.ls",
    ],
)
def test_light_parts_need_no_torch(code):
    assert not {"torch", "transformers"} & loaded_by(code)
