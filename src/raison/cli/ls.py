"""raison ls: the names of methods, searches, rules, models, metrics and data sets, with descriptions."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from raison.cli import options


def ls_command(
    what: Annotated[
        str, typer.Argument(help="methods, searches, rules, models, metrics or datasets.")
    ] = "methods",
    json: options.OneJson = False,
) -> None:
    """List what can be named: methods, searches, rules, models, metrics or data sets."""
    from raison.api import ls as names_of

    names = names_of(what)
    rows = [name_with_description(what, name) for name in names]
    if json:
        import json as writer

        print(writer.dumps(rows, ensure_ascii=False))
        return
    if not rows:
        print(f"No {what} are installed.")
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        print(f"{row['name']:<{width}}  {row['about']}")
    if what != "models":
        from raison.api import LISTED

        for sentence in LISTED[what].broken:
            print(sentence, file=sys.stderr)


def name_with_description(what: str, name: str) -> dict[str, str]:
    """A name with its first sentence, which is its documentation."""
    if what == "models":
        from raison.models import catalog

        entry = catalog.catalog_entries()[name]
        return {"name": name, "about": entry.description}
    from raison.api import LISTED

    entry = LISTED[what][name]
    about = ""
    if entry.__doc__:
        about = entry.__doc__.strip().splitlines()[0]
    if what in ("methods", "searches"):
        needs = ", ".join(sorted(LISTED[what].build(name).needs))
        if needs:
            about += f" (needs {needs})"
    return {"name": name, "about": about}
