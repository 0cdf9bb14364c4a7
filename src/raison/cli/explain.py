"""raison explain: which parts of a text made the model say this."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options

DEFAULT_MODEL = "sentiment"


def explain(
    text: Annotated[Optional[str], typer.Argument(help="The text, or - to read it from standard input.")] = None,
    model: options.Model = DEFAULT_MODEL,
    method: options.Methods = None,
    target: options.Target = None,
    contrast: options.Contrast = None,
    output: options.Output = None,
    units: options.Units = "word",
    removal: options.Removal = None,
    pair: options.Pair = None,
    question: options.Question = None,
    context: options.Context = None,
    seed: options.Seed = 0,
    truncate: options.Truncate = False,
    json: options.Json = False,
    html: options.Html = None,
    out: options.Out = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Score the parts of a text by how much they made the model say what it says."""
    example = example_of(text, pair, question, context)
    from raison.cli.waiting import waiting

    with waiting("loading the libraries") as wait:
        from raison.api import DEFAULT_METHOD, explanations
        from raison.methods.base import check_needs
        from raison.models.load import load
        from raison.registry import methods

        # misspelt names are cheaper to refuse before a model is loaded
        chosen = [methods.build(name) for name in method or [DEFAULT_METHOD]]
        wait(f"opening {model}")
        opened = load(model, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        results: list[Any] = []
        for each in chosen:
            check_needs(each, opened)
            wait(each.name)
            results += explanations(
                opened,
                [example],
                each,
                target=number_or_text(target),
                contrast=contrast,
                output=output,
                units=units,
                removal=removal,
                seed=seed,
                truncate=truncate,
            )
    publish(results, json, html, out)


def example_of(text: str | None, pair: str | None, question: str | None, context: Path | None) -> Any:
    """The example of the given options; the text itself may come from standard input."""
    from raison.errors import InputError
    from raison.types import Example

    if question is not None or context is not None:
        if question is None:
            raise InputError("--context needs a --question.")
        if text == "-" or (text is None and context is None):
            return Example(question, read_input())
        if context is not None and text is not None:
            raise InputError("Give the context once: as TEXT or with --context.")
        return Example(question, read_file(context) if context is not None else text)
    if text is None:
        raise InputError("Give a text to explain, or - to read it from standard input.")
    return Example(read_input() if text == "-" else text, pair)


def read_input() -> str:
    from raison.errors import InputError

    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise InputError("Standard input is not UTF-8 text: re-encode it.") from None


def read_file(path: Path) -> str:
    from raison.errors import InputError

    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text: re-encode it.") from None


def number_or_text(target: str | None) -> Any:
    """`--target 3` counts tokens or classes, `--target great` names one; quote a number to write it: '"3"'."""
    if target is None:
        return None
    if target.lstrip("-").isdigit():
        return int(target)
    return target[1:-1] if len(target) > 2 and target[0] == target[-1] == '"' else target


def publish(results: list[Any], json: bool, html: Path | None, out: Path | None) -> None:
    """Results to stdout, and to the files that were asked for."""
    if out is not None:
        out.write_text("".join(result.to_json() + "\n" for result in results), encoding="utf-8")
    if html is not None:
        from raison.show import to_html

        html.write_text(to_html(results), encoding="utf-8")
        print(f"wrote {html}", file=sys.stderr)
    if json:
        for result in results:
            print(result.to_json())
        return
    from raison.show import render_many

    render_many(results)
