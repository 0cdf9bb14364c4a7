"""raison explain: which parts of a text made the model say this."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from raison.cli import options
from raison.cli.inputs import files_of_methods
from raison.core import limits
from raison.core.errors import InputError, MethodFailed
from raison.core.outputs import check_outputs, replacing

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
    difference: options.Difference = False,
    json: options.Json = False,
    html: options.Html = None,
    figure: options.Figure = None,
    out: options.Out = None,
    force: options.Force = False,
    device: options.Device = None,
    allow_pickle: options.AllowPickle = False,
    trust_remote_code: options.RemoteCode = False,
) -> None:
    """Score the parts of a text by how much they made the model say what it says.

    Several methods stand side by side, with how far they agree.
    """
    example = example_of(text, pair, question, context)
    inputs: list[str | Path | None] = [model, context, *files_of_methods(method or [])]
    check_outputs((html, out, figure), force=force, inputs=inputs)
    if figure is not None and figure.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"A figure is a .png, .svg or .pdf file, not {figure.name!r}.")
    if difference and len(method or []) < 2:
        raise InputError("--difference needs two methods: name them with -M A -M B.")
    if difference and json and figure is None:
        raise InputError("--difference is a picture of two records, and --json prints records: leave one of them away.")
    if seed < 0:
        raise InputError(f"A seed is a whole number from 0 up, not {seed}.")
    from raison.cli.progress import waiting

    with waiting("loading the libraries") as wait:
        from raison.api import build_method
        from raison.core.registry import methods
        from raison.engine import Request, run_methods
        from raison.methods.base import check_needs
        from raison.models.load import load

        # misspelt names are cheaper to refuse before a model is loaded
        chosen = [methods.build(name) for name in method or ()]
        wait(f"opening {model}")
        opened = load(model, device=device, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        request = Request(
            target=number_or_text(target),
            contrast=contrast,
            output=output,
            units=units,
            removal=removal,
            seed=seed,
            truncate=truncate,
        )
        chosen = chosen or [build_method(None, opened)]
        for each in chosen:
            check_needs(each, opened)
        by_method, failed = [], []
        for run in run_methods(
            opened, [example], chosen, request, keep_going=True, before_method=lambda each: wait(each.name)
        ):
            if run.failure is None:
                by_method.append(run.explanations)
            else:  # the others are not lost
                failed.append(run.failure)
        if not by_method:
            raise failed[0]
        results = [result for same in zip(*by_method, strict=True) for result in same]  # methods beside each other
    publish(results, json, html, out, figure, difference)
    if failed:
        raise MethodFailed(" ".join(map(str, failed)))


def example_of(text: str | None, pair: str | None, question: str | None, context: Path | None) -> Any:
    """The example of the given options; the text itself may come from standard input."""
    from raison.core.records import Example

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
    """Standard input as UTF-8, whatever the locale says."""
    if sys.stdin is None:
        raise InputError("Standard input is closed: pipe a text into it, or give the text as an argument.")
    try:
        return limits.read(sys.stdin.buffer, limits.TEXT, "Standard input").decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("Standard input is not UTF-8 text: re-encode it.") from None


def read_file(path: Path, most: int = limits.TEXT) -> str:
    try:
        with path.open("rb") as file:
            return limits.read(file, most, repr(str(path))).decode("utf-8-sig")  # a byte order mark is no text
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text: re-encode it.") from None


def number_or_text(target: str | None) -> Any:
    """`--target 3` counts tokens or classes, `3:6` names a range, `great` a word; quote a number to write it: '"3"'."""
    if target is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}:[0-9]{1,9}", target):
        start, stop = map(int, target.split(":"))
        return slice(start, stop)
    if re.fullmatch(r"-?[0-9]{1,9}", target):  # and not " 3", which is a word that could follow
        return int(target)
    return target[1:-1] if len(target) > 2 and target[0] == target[-1] == '"' else target


def publish(
    results: list[Any],
    json: bool,
    html: Path | None,
    out: Path | None,
    figure: Path | None = None,
    difference: bool = False,
) -> None:
    """Results to stdout first, so that a full disk loses nothing; then to the files that were asked for."""
    from raison.show import render_many, to_html

    lines = "".join(result.to_json() + "\n" for result in results)
    if json:
        sys.stdout.flush()
        sys.stdout.buffer.write(lines.encode("utf-8"))  # JSON is UTF-8, whatever the terminal is
        sys.stdout.buffer.flush()
    else:
        render_many(results, difference=difference)
    if out is not None:
        with replacing(out) as half:
            half.write_text(lines, encoding="utf-8")
    if html is not None:
        with replacing(html) as half:
            half.write_text(to_html(results), encoding="utf-8")
        print(f"wrote {html}", file=sys.stderr)
    if figure is not None:
        from raison.show import to_figure

        to_figure(results, figure, difference=difference)
        print(f"wrote {figure}", file=sys.stderr)
