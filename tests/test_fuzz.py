"""Whatever comes in: an answer, or one sentence. No traceback, no hang, no wrong exit code."""

from __future__ import annotations

import json
import random
import signal
from contextlib import contextmanager
from functools import cache

import pytest
from typer.testing import CliRunner

import raison
from raison.cli.app import app
from raison.core.errors import MethodFailed, RaisonError
from raison.core.records import Example, Explanation
from raison.core.registry import methods, searches
from raison.datasets.open import open_dataset
from raison.testing import tiny_hf

LIMIT = 30  # seconds for one input
MODELS = [
    ("bert", "classification"),
    ("roberta", "classification"),
    ("modernbert", "classification"),
    ("bert", "tagging"),
    ("bert", "qa"),
    ("gpt2", "causal"),
    ("llama", "causal"),
    ("t5", "seq2seq"),
    ("marian", "seq2seq"),
]
PIECES = [
    "film",
    "good",
    "not",
    "3.14",
    "übergroß",
    "한국어",
    "日本",
    "\u0623\u0647\u0644\u0627",
    "e\u0301",
    "\U0001f469\u200d\U0001f467",
    "\u200b",
    "\u202e",
    "\x00",
    "\x1b[31m",
    "\ud800",
    "[SEP]",
    "<s>",
    "[MASK]",
    "\n",
    "\t",
    " ",
    "  ",
    "'",
    '"',
    "(",
    ")",
    "{",
    "}",
    "…",
    "—",
    "ﬁ",
    "ﷺ",
    "a" * 40,
    "<script>",
    "\\",
    "%s",
    "\ufeff",
    "\u0000",
    "İ",
    "ß",
    "1e999",
    "NaN",
    "𝒳",
    "\U0010ffff",
]
SPECS = [
    "",
    "(",
    ")",
    "leave_one_out(",
    "leave_one_out()",
    "leave_one_out(x=1)",
    "integrated_gradients(steps=0)",
    "nosuch",
    "integrated_gradients(steps=-1)",
    "random",
    "lime(samples=1)",
    "lime(samples='a')",
    "kernel_shap(samples=nan)",
    "greedy",
    "greedy(evaluations=0)",
    "refined(sufficient=top(k=0))",
    "by_order(method=by_order)",
    "🙂",
    "a(b=c(d=e(",
    "own",
]

TARGETS = [None, 0, 1, -1, 10**6, "positive", "LABEL_0", "all", "", (0, 2), 3.5]


@cache
def model(family: str, task: str):
    return raison.load(*tiny_hf(family, task))


@contextmanager
def soon(what: object):
    """A call that takes too long is a hang."""

    def late(number, frame):
        raise TimeoutError(f"no answer within {LIMIT} s: {what!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def text_of(rng: random.Random, most: int = 8) -> str:
    return rng.choice(["", " ", ""]).join(rng.choice(PIECES) for _ in range(rng.randrange(most)))


def example_of(rng: random.Random):
    text = text_of(rng)
    kind = rng.randrange(6)
    if kind == 0:
        return (text, text_of(rng))
    if kind == 1:
        return {"text": text, "pair": text_of(rng)}
    if kind == 2:
        return [text, text_of(rng)]
    if kind == 3:
        return rng.choice([None, 3, b"bytes", {"a": 1}, [], [None], Example])
    return text


def method_of(rng: random.Random) -> str:
    if rng.random() < 0.25:
        return rng.choice(SPECS)
    return rng.choice([*methods, *searches])


def wishes_of(rng: random.Random) -> dict:
    some = {
        "target": lambda: rng.choice(
            [None, 0, 1, -1, 10**6, "positive", "LABEL_0", "all", "", (0, 2), 3.5, text_of(rng, 3)]
        ),
        "contrast": lambda: rng.choice([None, 0, 1, "LABEL_1", "x"]),
        "units": lambda: rng.choice(["token", "word", "sentence", "passage", "slot", "letter", ""]),
        "removal": lambda: rng.choice(
            [None, "delete", "mask", "mask_token", "pad_token", "zero", "magic"]
        ),
        "truncate": lambda: rng.random() < 0.5,
    }
    return {name: make() for name, make in some.items() if rng.random() < 0.3}


def no_mistake_of_ours(error: RaisonError) -> bool:
    """Whether a user could cause it: what the code of a method or model raised is told in a sentence as well."""
    return not isinstance(error, MethodFailed) and "RAISON_DEBUG" not in str(error)


def explained(rng: random.Random) -> None:
    given, name, how = example_of(rng), method_of(rng), wishes_of(rng)
    chosen = rng.choice(MODELS)
    with soon((chosen, given, name, how)):
        try:
            if name in searches or rng.random() < 0.3:
                found = raison.rationalize(model(*chosen), given, name, **how)
            else:
                found = raison.explain(model(*chosen), given, name, **how)
        except RaisonError as error:
            assert str(error).strip(), (chosen, given, name, how)
            assert no_mistake_of_ours(error), (chosen, given, name, how, error)
            return
    for each in found if isinstance(found, list) else [found]:
        assert isinstance(each, Explanation)
        assert Explanation.from_json(each.to_json()) == each


def loaded(rng: random.Random, folder) -> None:
    suffix = rng.choice(
        ["csv", "tsv", "jsonl", "json", "txt", "conllu", "parquet", "csv.gz", "npz", ""]
    )
    path = folder / f"f{rng.randrange(10**9)}.{suffix}"
    kind = rng.randrange(4)
    if kind == 0:
        data = rng.randbytes(rng.randrange(300))
    elif kind == 1:
        rows = [
            {"text": text_of(rng), "label": rng.choice(["a", None, 3, []]), text_of(rng, 2): 1}
            for _ in range(3)
        ]
        data = "\n".join(map(json.dumps, rows)).encode("utf-8", "surrogatepass")
    elif kind == 2:
        data = (
            "text,label\n" + "\n".join(f"{text_of(rng)},{text_of(rng, 2)}" for _ in range(3))
        ).encode("utf-8", "surrogatepass")
    else:
        data = b"".join(
            rng.choice([b"\xff", b"\n", b",", b'"', b"\t", b"{", b"text", b"\x1f\x8b"])
            for _ in range(30)
        )
    path.write_bytes(data)
    spec = str(path) + rng.choice(
        ["", "(text=text)", "(text=a, label=b)", "(format=csv)", "(task=qa)", "(", "(x=1)"]
    )
    with soon(spec):
        try:
            open_dataset(spec, limit=rng.choice([None, 1, 2]), skip_broken=rng.random() < 0.5)
        except RaisonError as error:
            assert str(error).strip()
    path.unlink()


def commanded(rng: random.Random, folder) -> None:
    verbs = [
        ["explain"],
        ["rationalize"],
        ["evaluate"],
        ["compare"],
        ["ls"],
        ["status"],
        ["report"],
        ["store", "verify"],
        ["run"],
        ["reproduce"],
        ["audit"],
        ["compatibility"],
        ["train", "classifier"],
        ["store", "query"],
        ["heads"],
        ["idf"],
    ]
    flags = [
        "--json",
        "--units",
        "--target",
        "-M",
        "--limit",
        "--seed",
        "--out",
        "--data",
        "-m",
        "--nosuch",
        "--metric",
        "--help",
        "--removal",
        "--split",
        "--workers",
        "--resume",
    ]
    words = [*rng.choice(verbs)]
    for _ in range(rng.randrange(5)):
        words.append(
            rng.choice(
                [*flags, str(folder / "none"), text_of(rng, 3), "0", "-1", "nan", *SPECS[:6]]
            )
        )
    if words[0] in ("explain", "rationalize", "evaluate", "compare", "compatibility", "heads"):
        words += ["-m", str(folder / "model")]  # no model of the catalog is opened here
    words = [word.replace("\x00", "").encode("utf-8", "replace").decode() for word in words]
    with soon(words):
        result = CliRunner().invoke(app, words)
    assert result.exit_code in (0, 1, 2, 130), (words, result.exit_code, result.output)
    assert "Traceback" not in result.output, (words, result.output)
    assert result.exception is None or isinstance(result.exception, SystemExit), (
        words,
        result.exception,
    )
    assert "RAISON_DEBUG" not in result.output, (words, result.output)


def storm(count: int, seed: int, folder) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.random()
        if kind < 0.6:
            explained(rng)
        elif kind < 0.85:
            loaded(rng, folder)
        else:
            commanded(rng, folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_a_storm_of_inputs(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storm(100, seed, tmp_path)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100, 140))
def test_twenty_thousand_inputs(seed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storm(500, seed, tmp_path)
