"""Files of a run that hold something else."""

from __future__ import annotations

from raison.testing import tiny_hf


def test_a_file_of_something_else_among_the_results_is_damage(tmp_path):
    from typer.testing import CliRunner

    from raison.cli.app import app, assemble

    hf, tokenizer = tiny_hf("bert", "classification")
    hf.save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    (tmp_path / "c.jsonl").write_text('{"text": "a film"}\n{"text": "plain"}\n')
    run, out = CliRunner(), tmp_path / "r"
    assemble()
    made = run.invoke(
        app, ["run", "-m", str(tmp_path / "m"), "-d", str(tmp_path / "c.jsonl"), "-M", "random", "--out", str(out)]
    )
    assert made.exit_code == 0
    (shard,) = (out / "shards").iterdir()
    (cost,) = (out / "costs").iterdir()
    shard.write_bytes(cost.read_bytes())
    told = run.invoke(app, ["store", "verify", str(out)])
    assert told.exit_code == 1 and "unexpected" not in told.output and "is no record of a result" in told.output
    for words in (["store", "repair", str(out)], ["report", str(out), "--out", str(tmp_path / "x.html")]):
        told = run.invoke(app, words)
        assert "unexpected" not in told.output, (words, told.output)
    again = run.invoke(app, ["run", "--resume", "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert run.invoke(app, ["store", "verify", str(out)]).exit_code == 0
