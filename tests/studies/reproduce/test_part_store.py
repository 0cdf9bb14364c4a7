"""Parts of a suite that are done are kept; what is torn or was stopped is made again."""

from __future__ import annotations

import pytest
import torch

from raison.studies.evaluate_methods import evaluate
from raison.studies.reproduce import method_runs
from raison.studies.reproduce.method_runs import measure_methods
from raison.studies.reproduce.part_store import PartStore, weights_fingerprint_for_suite
from raison.studies.reproduce.run_suite import reproduce


def test_a_suite_goes_on_from_the_parts_that_are_done(sentiment, data_dir, tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(
        method_runs, "evaluate", lambda *a, **k: made.append(1) or evaluate(*a, **k)
    )
    _, first = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 1
    _, second = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 1
    assert second[0].evaluation == first[0].evaluation
    reproduce(
        "P4-table3", limit=3, data_dir=data_dir, keep=tmp_path
    )  # other texts are another part
    assert len(made) == 2
    for file in tmp_path.iterdir():
        file.write_text(file.read_text()[:-40])  # torn
    _, third = reproduce("P4-table3", limit=2, data_dir=data_dir, keep=tmp_path)
    assert len(made) == 3
    assert third[0].evaluation == first[0].evaluation


def test_a_model_that_was_trained_again_is_another():
    from raison.testing import tiny_model

    model, again = (tiny_model("bert", "classification") for _ in range(2))
    other = tiny_model("bert", "classification", seed=1)
    assert (
        weights_fingerprint_for_suite(model)
        == weights_fingerprint_for_suite(again)
        != weights_fingerprint_for_suite(other)
    )
    with torch.no_grad():
        for weight in again.hf.parameters():
            weight += 1e-6
    assert weights_fingerprint_for_suite(model) != weights_fingerprint_for_suite(again)


def tiny_suite():
    """A suite of two controls on a model of nothing, and its texts."""
    from raison.core.records import Example
    from raison.studies.reproduce.suite import Suite, SuiteRun

    run = SuiteRun("tiny", "tiny", "texts")
    suite = Suite(
        "tiny", "", "", {"one": "random", "other": "leave_one_out"}, (run,), ("aopc",), removal=None
    )
    return (
        suite,
        run,
        [
            Example("the film is lovely", id="a", label=0),
            Example("nobody saw the end", id="b", label=1),
        ],
    )


def test_a_run_that_is_stopped_is_no_part_that_is_done(tmp_path, monkeypatch):
    """An evaluation that is stopped gives what it has; kept as done, it would be reported for all texts."""
    from raison.studies import evaluate_methods as evaluating
    from raison.testing import tiny_model

    suite, run, examples = tiny_suite()
    model = tiny_model("bert", "classification")
    kept = PartStore(tmp_path / "kept", suite, run)
    whole = evaluating.Job.work

    def once(job, texts):
        if job.texts:
            raise KeyboardInterrupt
        whole(job, texts)

    monkeypatch.setattr(evaluating, "GROUP", 1)
    monkeypatch.setattr(evaluating.Job, "work", once)
    with pytest.raises(KeyboardInterrupt):
        measure_methods(suite, model, examples, run, 0, kept)
    assert not list((tmp_path / "kept").glob("*.json"))
    monkeypatch.setattr(evaluating.Job, "work", whole)
    found, _ = measure_methods(suite, model, examples, run, 0, kept)
    assert len(found.cell("one", "aopc").each) == 2


@pytest.mark.parametrize(
    "torn", [b"", b'{"model": "x"', b'{"model": 3}', b"\xff\xfe\x00", b"[]", b"null"]
)
def test_a_torn_part_is_made_again(tmp_path, torn):
    from raison.testing import tiny_model

    suite, run, examples = tiny_suite()
    model = tiny_model("bert", "classification")
    kept = PartStore(tmp_path, suite, run)
    first, _ = measure_methods(suite, model, examples, run, 0, kept)
    (file,) = tmp_path.glob("*.json")
    good = file.read_bytes()
    file.write_bytes(torn)
    again, _ = measure_methods(suite, model, examples, run, 0, kept)
    assert again == first
    assert len(file.read_bytes()) > 0.9 * len(good)
    assert list(tmp_path.iterdir()) == [file]
