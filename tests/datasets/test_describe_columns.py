"""What was understood of a file is said, with an example."""

from __future__ import annotations

from typer.testing import CliRunner

from raison.cli.app import app
from raison.core import progress
from raison.datasets import open_dataset
from raison.studies.evaluate_methods import evaluate
from tests.helpers.user_data import TEXT, jsonl


def test_what_was_understood_is_said_with_an_example(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'review,stars,why\nfine,1,\n"{TEXT}",0,"[(2, 6), (18, 28)]"\n')
    heard = []
    with progress.hear(heard.append):
        found = open_dataset(f"{path}(text=review, label=stars, gold=why)")
    assert found.understood == (
        "a.csv: text is 'review'; label is 'stars'; gold is 'why', read as spans of characters; for example "
        f"'{TEXT}' has the label '0' and the marks 'dull', 'well acted'."
    )
    assert heard == [found.understood]
    assert open_dataset("reviews").understood == ""
    result = evaluate(
        lambda texts: [len(text) for text in texts],
        str(path) + "(text=review)",
        ["random"],
        ["aopc"],
    )
    assert any(note.startswith("a.csv: text is 'review'") for note in result.notes)


def test_the_command_line_warns_in_one_line(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"id": "x", "text": TEXT, "gold": [[2, 6]]})
    made = jsonl(
        tmp_path / "made.jsonl",
        {"id": "x", "tokens": TEXT.split(), "scores": [0, 1, 0, 0, 0, 0, 0, 0]},
    )
    found = CliRunner().invoke(
        app, ["evaluate", "-d", path, "--explanations", made, "--metric", "auprc"]
    )
    assert found.exit_code == 0, found.output
    (line,) = [line for line in found.stderr.splitlines() if line.startswith("note: ")]
    assert line.startswith("note: The numbers of 'gold' in a.jsonl could be characters or tokens")
    assert ".py" not in found.stderr
