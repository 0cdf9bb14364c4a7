"""Typer options that mean the same in every command, defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        envvar="RAISON_MODEL",
        help="Name (raison ls models), folder, .gguf file or hub name.",
    ),
]
Methods = Annotated[
    Optional[list[str]],
    typer.Option(
        "-M",
        "--method",
        help="A method, e.g. leave_one_out; repeat it to compare (raison ls methods).",
    ),
]
Target = Annotated[
    Optional[str],
    typer.Option(
        "--target", help="A label, an answer or a continuation; default: what the model predicts."
    ),
]
Contrast = Annotated[
    Optional[str], typer.Option("--contrast", help="Explain the target rather than this.")
]
Output = Annotated[
    Optional[str], typer.Option("--output", help="What is explained: logit, log_prob or prob.")
]
Units = Annotated[str, typer.Option("--units", help="token, word, sentence, passage or slot.")]
ChosenUnits = Annotated[
    Optional[str],
    typer.Option(
        "--units",
        help="token, word, sentence, passage or slot; default: tokens of writers, words of others.",
    ),
]
Search = Annotated[
    Optional[str],
    typer.Option(
        "-S",
        "--search",
        help="refined (default), greedy, exact, by_order(method=…), hierarchical (raison ls searches).",
    ),
]
Sufficient = Annotated[
    Optional[str],
    typer.Option(
        "--sufficient",
        help="When a part is enough: argmax, probability(tau=0.9), top(k=5), … (raison ls rules).",
    ),
]
Generate = Annotated[
    int,
    typer.Option("--generate", help="Let the model write up to so many tokens, and explain them."),
]
Removal = Annotated[
    Optional[str], typer.Option("--removal", help="delete, mask, mask_token, pad_token or zero.")
]
Context = Annotated[
    Optional[Path], typer.Option("--context", help="A file with the context of the question.")
]
Contexts = Annotated[
    Optional[list[Path]],
    typer.Option("--context", help="A file with a passage to answer from; repeat it for more."),
]
Answer = Annotated[
    Optional[str],
    typer.Option("--answer", help="The answer to explain; default: what the model answers."),
]
Figure = Annotated[
    Optional[Path], typer.Option("--figure", help="Draw the result: a .png, .svg or .pdf file.")
]
Difference = Annotated[
    bool,
    typer.Option(
        "--difference", help="Show where the first method gives more or less than the others."
    ),
]
Question = Annotated[
    Optional[str], typer.Option("--question", help="A question to be answered from the context.")
]
Pair = Annotated[
    Optional[str], typer.Option("--pair", help="The second text, for models that read two.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, one line each.")]
OneJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
Html = Annotated[Optional[Path], typer.Option("--html", help="Write a self-contained HTML file.")]
Out = Annotated[
    Optional[Path],
    typer.Option("--out", help="Write the results to this file as JSON, one line each."),
]
Truncate = Annotated[
    bool, typer.Option("--truncate", help="Cut a text that is too long, and record it.")
]
Device = Annotated[
    Optional[str],
    typer.Option("--device", help="Where the model runs: cpu, cuda, cuda:1, mps; default: cpu."),
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Open pickled weights (they can run code).")
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run modelling code that comes with the model.")
]

# -- data sets ---------------------------------------------------------------------------------------------------

Split = Annotated[
    Optional[str], typer.Option("--split", help="Part of the data set; default: its test part.")
]
Limit = Annotated[Optional[int], typer.Option("--limit", help="Only the first so many texts.")]
DataDir = Annotated[
    Optional[Path],
    typer.Option("--data-dir", envvar="RAISON_DATA", help="Folder that holds the data sets."),
]
SkipBroken = Annotated[
    bool, typer.Option("--skip-broken", help="Leave broken records out, and count them.")
]

# -- training ----------------------------------------------------------------------------------------------------

LabelledData = Annotated[
    str,
    typer.Option(
        "-d", "--data", help="A data set with labels, or a file: data.csv(text=a, label=b)."
    ),
]
TrainedFolder = Annotated[
    Path,
    typer.Option("--out", help="Folder to write; the same command goes on there after a stop."),
]
Seeds = Annotated[int, typer.Option("--runs", help="Seeds to train, each in a folder of its own.")]
LimitOfParts = Annotated[
    Optional[int], typer.Option("--limit", help="Only the first so many texts of each part.")
]
HalfAdapter = Annotated[bool, typer.Option("--half", help="Write the adapter in float16.")]
