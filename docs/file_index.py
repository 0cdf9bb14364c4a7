"""Write the index of files at the end of ARCHITECTURE.md: what each file holds, and what it offers to others.

python docs/file_index.py            # rewrite the index
python docs/file_index.py --check    # fail if it is out of date (the tests do this)
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "raison"
PAGE = ROOT / "ARCHITECTURE.md"
HEADING = "## Every file\n"

# Folders of many small files of one kind, each named after the one thing in it.
ALIKE = {
    "datasets/sources": "Published data sets, a file each, named as in the registry.",
    "models/families": "Facts about architectures, a file each, named as transformers names them.",
}


def file_entry(path: Path) -> str:
    """The line about one file: its name, the first sentence of its docstring, its classes and what it exports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = exported_names(tree)
    names = []
    for node in tree.body:
        is_class = isinstance(node, ast.ClassDef)
        is_exported_function = isinstance(node, ast.FunctionDef) and node.name in exported
        if (is_class and not node.name.startswith("_")) or is_exported_function:
            names.append(f"`{node.name}`")
    offers = f" {', '.join(dict.fromkeys(names))}" if names else ""
    return f"- `{path.name}`: {first_sentence(tree)}{offers}"


def exported_names(tree: ast.Module) -> set[str]:
    """The names in a file's `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {name.value for name in ast.walk(node.value) if isinstance(name, ast.Constant)}
    return set()


def first_sentence(tree: ast.Module) -> str:
    """The first sentence of a file's docstring, on one line."""
    docstring = ast.get_docstring(tree) or ""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + stop.strip()


def folder_index(folder: Path) -> list[str]:
    """The lines about one folder: a heading, and a line for each file."""
    name = folder.relative_to(SOURCE).as_posix()
    title = "raison/" if name == "." else f"{name}/"
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    if name in ALIKE:
        names = ", ".join(f"`{path.stem}`" for path in files)
        return [f"### `{title}`", "", f"{ALIKE[name]} {names}", ""]

    entries = [file_entry(path) for path in files]
    return [f"### `{title}`", "", *entries, ""] if entries else []


def index() -> str:
    """The whole index."""
    folders = sorted({path.parent for path in SOURCE.rglob("*.py")})
    lines = [
        HEADING,
        "Written by `python docs/file_index.py` from the first sentence of each file, its classes and what it exports.",
        "",
    ]
    for folder in folders:
        lines += folder_index(folder)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()

    written = PAGE.read_text(encoding="utf-8")
    by_hand = written.split(HEADING)[0]
    wanted = by_hand + index()
    if not arguments.check:
        PAGE.write_text(wanted, encoding="utf-8")
    elif written != wanted:
        sys.exit("The index in ARCHITECTURE.md is out of date: run  python docs/file_index.py")


if __name__ == "__main__":
    main()
