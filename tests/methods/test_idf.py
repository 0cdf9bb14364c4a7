"""Document frequencies, shipped and of ones own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

import raison
from raison.core.artifact import Artifact
from raison.core.errors import InputError, UnknownName
from raison.core.registry import methods
from raison.core.text_splitting import split_words
from raison.methods.idf import SHIPPED, idf_entry
from raison.studies.document_frequencies import fit_idf
from raison.testing.precision import Float64
from tests.helpers.removed_units import bag, model_of


@pytest.fixture(autouse=True)
def precise(request):
    real = "registry" in request.keywords  # real models are what they are: float32
    with nullcontext() if real else Float64():
        yield


def test_the_shipped_table():
    artifact = Artifact.open(SHIPPED, "idf")
    counts = artifact.data["counts"]
    assert len(counts) == 5000 and SHIPPED.stat().st_size < 100_000
    assert all(
        word == idf_entry(word) == word.lower() and 0 < n <= artifact.data["documents"]
        for word, n in counts.items()
    )
    found = raison.explain(model_of("classifier"), "The lobster's film is a Zyzzyva", "idf")
    documents = artifact.data["documents"]
    expected = [
        math.log((1 + documents) / (1 + counts.get(w, 0)))
        for w in ("the", "lobster", "film", "is", "a", "zyzzyva")
    ]
    np.testing.assert_allclose(found.scores, expected)
    assert found.artifacts == {"idf": artifact.content()}
    assert found.scores[0] < found.scores[2] < found.scores[5] == math.log(1 + documents)


def test_idf_of_units_of_every_size():
    model = model_of("classifier")
    text = "A dull storyteller. Good actors"
    of = {
        word: raison.explain(model, text, "idf").scores[i]
        for i, word in enumerate(text.replace(".", " .").split())
    }
    tokens = raison.explain(model, text, "idf", units="token")
    assert len(tokens.units) > len(of)
    for name, span, score in zip(tokens.tokens, tokens.units.spans, tokens.scores, strict=True):
        whole = next(text[a:b] for a, b in split_words(text) if a <= span[1] < b)
        assert (
            name.lower() in whole.lower() and abs(score - of[whole]) < 1e-12
        )  # a part of a word counts as the word
    pair = raison.explain(model, raison.Example(text, "The actors"), "idf")
    assert abs(pair.scores[-1] - of["actors"]) < 1e-12
    sentence = raison.explain(model, text, "idf", units="sentence")
    inside = tokens.scores[
        : len(tokens.scores)
        - (np.array([s[1] for s in tokens.units.spans]) > text.index(".")).sum()
    ]
    assert abs(sentence.scores[0] - inside.mean()) < 1e-12


def test_a_table_of_ones_own(tmp_path):
    table = fit_idf(["The film", "the FILM’s end", "the end, the end", "  "], corpus="three")
    assert table.data == {"documents": 3, "counts": {"the": 3, "end": 2, "film": 2, ",": 1}}
    assert fit_idf(["the end", "the film", "a film"], largest=2).data["counts"] == {
        "film": 2,
        "the": 2,
    }
    table.save(tmp_path / "own.json")
    model = model_of("classifier")
    found = raison.explain(model, "The film ended", f"idf(table={str(tmp_path / 'own.json')!r})")
    np.testing.assert_allclose(found.scores, [0, math.log(4 / 3), math.log(4)], atol=1e-12)
    moved = tmp_path / "moved.json"
    (tmp_path / "own.json").rename(moved)
    again = raison.explain(model, "The film ended", f"idf(table={str(moved)!r})")
    assert (
        again.artifacts
        == found.artifacts
        != raison.explain(model, "The film ended", "idf").artifacts
    )
    for texts in ([], ["  "]):
        with pytest.raises(InputError, match="no words to count"):
            fit_idf(texts)
    with pytest.raises(InputError, match="must be a string"):
        fit_idf([3])


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"kind": "heads", "data": {}}', '{"kind": "idf", "data": {}}',
     '{"kind": "idf", "data": {"documents": 0, "counts": {}}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": [1]}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": {"a": 3}}}',
     '{"kind": "idf", "data": {"documents": 2, "counts": {"a": 0.5}}}'],
)  # fmt: skip
def test_a_bad_table_is_one_sentence(tmp_path, content):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        raison.explain(raison.load(bag), "a good film", f"idf(table={str(path)!r})")
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


def test_a_missing_table_says_how_to_make_one():
    with pytest.raises(InputError, match="raison idf"):
        raison.explain(raison.load(bag), "a good film", "idf(table='nowhere.json')")


def command(*args):
    return subprocess.run(
        [sys.executable, "-m", "raison", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command_fits_a_table(tmp_path):
    (tmp_path / "texts.txt").write_text("The film\n\nthe end\n", encoding="utf-8")
    lines = [{"text": "The film"}, {"text": "the end", "label": 1}]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    tables = []
    for name in ("texts.txt", "texts.jsonl"):
        out = tmp_path / f"{name}.json"
        result = command("idf", "--data", tmp_path / name, "--out", out)
        assert result.returncode == 0 and result.stdout == "3 words of 2 texts\n", result.stderr
        tables.append(Artifact.open(out, "idf"))
    assert tables[0] == tables[1] and tables[0].data["counts"] == {"the": 2, "end": 1, "film": 1}
    assert tables[0].about["corpus"] == "texts.txt"
    result = command(
        "idf", "--data", tmp_path / "texts.txt", "--out", tmp_path / "few.json", "--words", 1
    )
    assert Artifact.open(tmp_path / "few.json", "idf").data["counts"] == {"the": 2}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("none.txt", None, "no file"), ("empty.txt", "\n \n", "is empty"), ("bad.jsonl", "{\n", "Line 1"),
     ("bad.jsonl", '{"text": "a"}\n{"words": "b"}\n', "Line 2"), ("bad.jsonl", '{"text": 3}\n', "Line 1"),
     ("bad.jsonl", '["a"]\n', "Line 1")],
)  # fmt: skip
def test_what_the_command_refuses(tmp_path, name, content, said):
    from raison.cli.idf import idf_command

    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        idf_command(tmp_path / name, tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
    with pytest.raises(InputError, match="from 1 up"):
        idf_command(tmp_path / name, tmp_path / "out.json", words=0)
    with pytest.raises(InputError, match="can't be written"):
        idf_command(tmp_path / name, tmp_path / "nowhere" / "out.json")


def test_names():
    for name in (
        "occlusion",
        "kernel_shap",
        "lime",
        "shapley_sampling",
        "uniform",
        "position",
        "idf",
    ):
        assert name in methods
    with pytest.raises(UnknownName, match="kernel_shap"):
        methods.build("kernelshap")
