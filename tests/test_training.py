"""The training loop (stopping, killing, going on, full disks) and fine-tuning for partial contexts on tiny models."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from raison.core import progress
from raison.core.errors import InputError, UnknownName
from raison.core.records import Example
from raison.models.load import load
from raison.models.lora import merge
from raison.testing import tiny_hf
from raison.testing.tiny import TEXTS
from raison.training import fit as loop
from raison.training.compatibility import Setup, Task, learner_of, perplexities, subsets, train_compatibility
from raison.training.dropout import Side, drawn, rule_of
from raison.training.dropout_attention import attending
from raison.training.fit import Course, Stopped, Unsaved, fit, lines
from raison.training.lm_data import Feed, Row, blocks, joined, named, several, translations
from raison.training.seeds import generator

PAIRS = [(text[: 40 + 3 * i], TEXTS[(k + 1) % len(TEXTS)][: 30 + i]) for i in range(8) for k, text in enumerate(TEXTS)]
SIDE = Side(torch.ones(4, 23, dtype=torch.bool), 2)
SMALL = dict(length=24, batch=4, steps=4, warm=0.0)


@pytest.fixture
def prose(tmp_path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(f"{text} {i}" for i in range(12) for text in TEXTS), encoding="utf-8")
    return path


# -- the loop --------------------------------------------------------------------------------------------------


def problem(seed: int = 0):
    """A small network with dropout, and what it should learn."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Dropout(0.3), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    data = torch.randn(50, 4, 6)
    feed = lambda part: data[part % 50]  # noqa: E731
    loss = lambda model, batch, part: (model(batch)[..., 0] - batch.sum(-1)).square().mean()  # noqa: E731
    return model, feed, loss


def one_group(model, peak=1e-2):
    return [{"params": list(model.parameters()), "peak": peak}]


def test_the_loop_is_the_one_that_anybody_would_write(tmp_path):
    model, feed, loss = problem()
    done = fit(model, one_group(model), feed, loss, Course(tmp_path, 7, warm=0.3, accumulate=2, clip=0.5, seed=3))
    other, feed, loss = problem()
    optimizer = torch.optim.AdamW(other.parameters(), weight_decay=0.01, fused=True)
    expected = []
    for step in range(7):
        total = 0.0
        for part in (2 * step, 2 * step + 1):
            torch.manual_seed(3 * 1_000_003 + part)
            value = loss(other, feed(part), part) / 2
            value.backward()
            total += value.item()
        torch.nn.utils.clip_grad_norm_(other.parameters(), 0.5)
        rate = [0.5, 1, 1, 4 / 5, 3 / 5, 2 / 5, 1 / 5][step]
        optimizer.param_groups[0]["lr"] = 1e-2 * rate
        optimizer.step()
        optimizer.zero_grad()
        expected.append(total)
    assert done.losses == pytest.approx(expected, abs=1e-7)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_rates():
    assert [Course(Path(), 4, warm=0.0).rate(k) for k in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [Course(Path(), 4, warm=0.5, schedule="constant").rate(k) for k in range(4)] == [0.5, 1, 1, 1]
    with pytest.raises(InputError, match="schedule is linear or constant"):
        Course(Path(), 4, schedule="cosine")
    with pytest.raises(InputError, match="steps is a whole number from 1 up"):
        Course(Path(), 0)
    with pytest.raises(InputError, match="clip is a number from 0 up"):
        Course(Path(), 1, clip=-1.0)


def test_only_the_groups_are_trained_each_at_its_rate(tmp_path):
    model, feed, loss = problem()
    before = [p.detach().clone() for p in model.parameters()]
    groups = [{"params": model[0].parameters(), "peak": 1e-2}, {"params": [model[3].bias], "peak": 0.0}]
    fit(model, groups, feed, loss, Course(tmp_path, 2))
    moved = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert moved == [True, True, False, False]
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert [tuple(p.shape) for p in state["trained"]] == [(16, 6), (16,), (1,)]  # only what is trained
    with pytest.raises(InputError, match="Nothing of this model is to be trained"):
        fit(model, [], feed, loss, Course(tmp_path, 2))


def test_looking_changes_nothing_and_is_told(tmp_path, capsys):
    runs = []
    for name, every in (("often", 2), ("never", 0)):
        model, feed, loss = problem()
        modes = []

        def look(model=model, modes=modes):
            modes.append(model.training)
            return {"number": torch.rand(3).sum().item()}

        state = torch.get_rng_state()
        with progress.listen(lines(every=1e9)):
            done = fit(model, one_group(model), feed, loss, Course(tmp_path / name, 5, every=every, before=True), look)
        assert torch.equal(state, torch.get_rng_state())  # the caller's own randomness is not touched
        assert not any(modes)
        runs.append((done, [p.detach().clone() for p in model.parameters()]))
        (tmp_path / name).mkdir(exist_ok=True)
    (often, weights), (never, same) = runs
    assert [entry["step"] for entry in often.history] == [0, 2, 4, 5]
    assert [entry["step"] for entry in never.history] == [0, 5]
    assert often.losses == never.losses and all(map(torch.equal, weights, same))
    told = capsys.readouterr().err
    assert "2/5  loss " in told and " s left; number " in told


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for name in ("often", "never"):
        (tmp_path / name).mkdir()


class Interrupting:
    """A feed that sends a signal in one of its parts."""

    def __init__(self, feed, part, number=signal.SIGINT):
        self.feed, self.part, self.number = feed, part, number

    def __call__(self, part):
        if part == self.part:
            signal.raise_signal(self.number)
        return self.feed(part)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_the_step_and_the_same_call_goes_on(tmp_path, number):
    model, feed, loss = problem()
    look = lambda: {"sum": sum(float(p.sum()) for p in model.parameters())}  # noqa: E731
    course = Course(tmp_path / "often", 8, every=3, accumulate=2, settings={"lr": 1})
    handlers = signal.getsignal(signal.SIGINT)
    whole = fit(model, one_group(model), feed, loss, course, look)
    expected = [p.detach().clone() for p in model.parameters()]
    (course.out / "checkpoint.pt").unlink()
    model, feed, loss = problem()
    with pytest.raises(Stopped, match="Stopped after step 4 of 8: the same command goes on from there.") as stopped:
        fit(model, one_group(model), Interrupting(feed, 6, number), loss, course, look)
    assert stopped.value.exit_code == 130
    assert signal.getsignal(signal.SIGINT) is handlers
    model, _, _ = problem(1)  # other weights: the checkpoint's count
    heard = []
    with progress.listen(lambda done, total, what: heard.append((done, total, what))):
        again = fit(model, one_group(model), feed, loss, course, look)
    assert heard[0] == (4, 8, "going on after step 4")
    assert again.losses == whole.losses and again.history == whole.history
    assert all(torch.equal(a, b) for a, b in zip(expected, model.parameters(), strict=True))


def test_other_settings_are_refused(tmp_path):
    model, feed, loss = problem()
    fit(model, one_group(model), feed, loss, Course(tmp_path, 2, settings={"lr": 1, "seed": 2}))
    for settings in ({"lr": 2, "seed": 2}, {"seed": 2}, {"lr": 1, "seed": 2, "more": 3}):
        with pytest.raises(InputError, match="was made with another (lr|more): delete it, or give its settings"):
            fit(model, one_group(model), feed, loss, Course(tmp_path, 2, settings=settings))
    other = torch.nn.Linear(3, 3)
    with pytest.raises(InputError, match="was made with another model"):
        fit(other, one_group(other), feed, loss, Course(tmp_path, 2, settings={"lr": 1, "seed": 2}))
    (tmp_path / "checkpoint.pt").write_bytes(b"half")
    with pytest.raises(InputError, match="can't be read .*: delete it to start anew"):
        fit(model, one_group(model), feed, loss, Course(tmp_path, 2))


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("PytorchStreamWriter failed")])
def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch, error):
    model, feed, loss = problem()
    course = Course(tmp_path, 6, save_every=0.0)
    real, calls = torch.save, []

    def failing(state, place):
        calls.append(place)
        if len(calls) == 4:
            Path(place).write_bytes(b"some of it")
            raise error
        real(state, place)

    with monkeypatch.context() as patch:
        patch.setattr(loop.torch, "save", failing)
        with pytest.raises(Unsaved, match="could not be written .*the last checkpoint is kept: make room") as told:
            fit(model, one_group(model), feed, loss, course)
    assert str(told.value).count(".  ") == 0 and "\n" not in str(told.value)
    assert sorted(p.name for p in tmp_path.glob("checkpoint*")) == ["checkpoint.pt"]
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["done"]["step"] == 3
    again = fit(model, one_group(model), feed, loss, course)
    fresh, feed, loss = problem()
    (tmp_path / "checkpoint.pt").unlink()
    assert fit(fresh, one_group(fresh), feed, loss, course).losses == again.losses


def test_a_full_disk_before_any_checkpoint(tmp_path, monkeypatch):
    def failing(state, place):
        raise OSError(28, "No space left on device")

    model, feed, loss = problem()
    monkeypatch.setattr(loop.torch, "save", failing)
    with pytest.raises(Unsaved, match="No space left on device.*there is no checkpoint yet: make room first"):
        fit(model, one_group(model), feed, loss, Course(tmp_path, 1))


def test_a_loss_that_is_no_number_stops_the_run(tmp_path):
    model, feed, _ = problem()
    loss = lambda model, batch, part: model(batch).sum() * (math.nan if part == 2 else 1)  # noqa: E731
    with pytest.raises(InputError, match="The loss is nan in step 3: train with a smaller learning rate"):
        fit(model, one_group(model), feed, loss, Course(tmp_path, 5))


KILLED = """
    import os, signal, sys, torch
    torch.set_num_threads(1)
    from raison.testing import tiny_hf
    from raison.models.load import load
    from raison.training import compatibility, material
    out, part = sys.argv[1], int(sys.argv[2])

    class Killing(material.Feed):
        def __call__(self, number):
            if number == part:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(number)

    compatibility.Feed = Killing
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    texts = [f"{text} {i}" for i in range(12) for text in material_texts]
    compatibility.train_compatibility(
        load(hf, tokenizer), texts, out=out, length=24, batch=4, steps=6, accumulate=2, lora=2, save_every=0.0
    )
"""


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    """SIGKILL in the middle of a step: no handler runs, and what is on the disk must do."""
    pytest.importorskip("peft")
    code = textwrap.dedent(KILLED).replace("material_texts", repr(TEXTS))
    run = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "killed")]
    killed = subprocess.run([*run, "7"], capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert torch.load(tmp_path / "killed" / "checkpoint.pt", weights_only=True)["done"]["step"] == 3
    assert not (tmp_path / "killed" / "training.json").exists()
    texts = [f"{text} {i}" for i in range(12) for text in TEXTS]
    settings = dict(length=24, batch=4, steps=6, accumulate=2, lora=2, save_every=0.0)
    reports = []
    for name in ("killed", "whole"):
        hf, tokenizer = tiny_hf("llama", "causal", double=False)
        reports.append(train_compatibility(load(hf, tokenizer), texts, out=tmp_path / name, **settings))
    assert reports[0]["losses"] == reports[1]["losses"] and len(reports[0]["losses"]) == 6
    assert reports[0]["history"] == reports[1]["history"]
    weights = [(tmp_path / name / "adapter_model.safetensors").read_bytes() for name in ("killed", "whole")]
    assert weights[0] == weights[1]


# -- what is trained on ----------------------------------------------------------------------------------------


def test_blocks_hold_the_text_once_and_hold_some_of_it_out(prose):
    model = load(*tiny_hf("llama", "causal"))
    texts = [Example(prose.read_text(encoding="utf-8"))]
    found = blocks(model, texts, length=24, held=0.1, batch=4)
    rows = found.train + found.held
    assert found.lead == 1 and all(len(row.target) == 24 and row.target[0] == 1 for row in rows)  # [CLS] leads
    stream = [i for row in rows for i in row.target[1:]]
    assert stream == model.codec(texts[0].text + "\n", special=False).ids[: len(stream)].tolist()
    assert found.counts["blocks held out"] == len(found.held) == round(0.1 * len(rows))
    assert not {row.target for row in found.train} & {row.target for row in found.held}
    gpt = load(*tiny_hf("gpt2", "causal"))
    assert blocks(gpt, texts, length=24, held=0.1, batch=4).lead == 0
    phrase = " the film is a lovely surprise"  # again and again: what is held out stands in the rest as well
    length = 2 * len(gpt.codec(phrase, special=False).ids)
    with pytest.raises(InputError, match=f"gives 0 blocks of {length} tokens to train on, less than a batch of 1"):
        blocks(gpt, [Example(phrase * 200)], length=length, held=0.1, batch=1)


def test_several_texts_give_as_many_tokens_each_and_hold_out_their_own_share(prose):
    model = load(*tiny_hf("gpt2", "causal"))
    text = prose.read_text(encoding="utf-8")
    settings = {"length": 24, "held": 0.1, "batch": 4, "most": 24 * 20 + 5}
    parts = [blocks(model, [Example(text)] * 3, **settings), blocks(model, [Example(text[::-1])], **settings)]
    assert [part.counts["tokens read"] for part in parts] == [485, 485]
    rows = [*parts[0].train, *parts[0].held]
    assert [i for row in rows for i in row.target] == model.codec(text, special=False).ids[:480].tolist()
    both = joined(parts)
    assert both.train == parts[0].train + parts[1].train and len(both.held) == 4
    assert both.held[::2] == parts[0].held and both.held[1::2] == parts[1].held
    assert both.counts["tokens left over"] == 10 and joined(parts[:1]) is parts[0]


def test_names_joined_by_plus(tmp_path):
    assert several("wikitext2+imdb(level=a+b) + x.txt") == ["wikitext2", "imdb(level=a+b)", "x.txt"]
    assert several(["a+b", "c"]) == [["a+b", "c"]] and several("imdb") == ["imdb"]
    (tmp_path / "a+b.txt").write_text("x")
    assert several(str(tmp_path / "a+b.txt")) == [str(tmp_path / "a+b.txt")]
    assert named(f"wikitext2+{tmp_path}/c.txt") == "wikitext2+c.txt"
    with pytest.raises(InputError, match=r"names nothing on one side of a \+"):
        several("imdb+")


def test_every_row_comes_once_an_epoch():
    rows = [Row((i,) * (1 + i % 5)) for i in range(23)]
    feed = Feed(rows, 4, 7)
    epochs = [[row.target[0] for k in range(5) for row in feed(5 * epoch + k)] for epoch in range(2)]
    assert all(len(set(epoch)) == 20 for epoch in epochs) and epochs[0] != epochs[1]
    assert [row.target[0] for row in Feed(rows, 4, 7)(7)] == epochs[1][8:12]  # without what came before
    assert Feed(rows, 4, 8)(0) != Feed(rows, 4, 7)(0)


def test_pairs_become_sources_and_targets_with_an_end(tmp_path):
    model = load(*tiny_hf("marian", "seq2seq"))
    examples = [Example(source, label=target) for source, target in PAIRS]
    found = translations(model, examples, length=50, held=0.1, batch=4, own=False, out=tmp_path)
    assert len(found.train) + len(found.held) == 40 and len(found.held) == 4
    first = found.train[0]
    assert list(first.source) == model.codec(PAIRS[0][0]).ids.tolist()
    assert first.target[-1] == 2 and model.codec.text(first.target[:-1]) == PAIRS[0][1]
    assert not {row.source for row in found.train} & {row.source for row in found.held}
    cut = translations(model, examples, length=22, held=0.1, batch=1, own=False, out=tmp_path)
    assert 0 < cut.counts["pairs left out, longer than length"] < 40
    with pytest.raises(InputError, match="has no translation: give pairs"):
        translations(model, [Example("A film.")], length=50, held=0.1, batch=1, own=False, out=tmp_path)


def test_own_targets_are_what_the_model_writes_and_are_kept(tmp_path, monkeypatch):
    model = load(*tiny_hf("marian", "seq2seq"))
    examples = [Example(source) for source, _ in PAIRS[:9]]
    found = translations(model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path)
    (tmp_path / "own_targets.json").write_text("{")  # half a file is written anew
    assert translations(model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path) == found
    written = model.write(model.encode(examples[:1])[0])
    assert list(found.train[0].target) == (written if len(written) >= 6 else [*written, 2])
    monkeypatch.setattr(type(model), "write", None)  # a run that goes on does not write again
    assert translations(model, examples, length=50, held=0.2, batch=2, own=True, out=tmp_path) == found


def test_reports_name_no_folder(tmp_path):
    (tmp_path / "my (1).txt").write_text("x")
    assert named(tmp_path / "my (1).txt") == "my (1).txt"
    assert named(f"{tmp_path}/pairs.csv(text=de, label=en)") == "pairs.csv(text=de, label=en)"
    assert named(["a"]) == "texts in memory"


# -- compatibility ---------------------------------------------------------------------------------------------


def setup_of(model, **settings) -> tuple[Task, list[Row]]:
    from raison.training.dropout_attention import reach_of

    chosen = Setup(**{**SMALL, **settings})
    if model.task == "causal":
        found = blocks(model, [Example(t * 6) for t in TEXTS], length=chosen.length, held=0.3, batch=1)
    else:
        examples = [Example(source, label=target) for source, target in PAIRS]
        found = translations(model, examples, length=60, held=0.3, batch=1, own=False, out=Path())
    task = Task(model.hf, model, rule_of(chosen.keep), chosen, reach_of(model.hf, "tiny"), found.lead)
    return task, found.held


@pytest.mark.parametrize("family", ["gpt2", "llama", "bart"])
def test_perplexities_are_those_of_raison_itself(family):
    """Full and subset perplexity, measured by masks, against `score` with the other tokens deleted."""
    import numpy as np

    from raison.core.records import Target
    from raison.models.protocol import Question
    from raison.models.tasks.continuation import extended

    model = load(*tiny_hf(family, "causal" if family != "bart" else "seq2seq"))
    task, rows = setup_of(model)
    with attending(model.hf):
        found = perplexities(task, rows[:3], subset=5, batch=2, draws=1)
        expected, count, full = 0.0, 0, []
        for start in (0, 2):
            group = sorted(rows[start : min(3, start + 2)], key=len)
            inputs, _ = task.inputs(group)
            keeps, seen = subsets(task.sides(inputs), 4, generator(0, start, 0))
            for b, row in enumerate(group):
                if family == "bart":
                    blank = model.encode([Example(model.codec.text(row.source[:-1]))])[0]
                    if blank.ids[:-1].tolist() != list(row.source):
                        pytest.fail("the source is cut in another way")
                    encoding, at = extended(blank, row.target, model.codec), len(row.source)
                else:
                    blank = model.encode([Example("The")])[0]
                    encoding, at = extended(blank, row.target[len(blank) :], model.codec), 0
                    data = encoding.to_dict() | {"ids": list(row.target)}
                    encoding = type(encoding).from_dict(data)
                for i in range(len(row.target) if family == "bart" else len(row.target) - 1):
                    place = at + i + 1
                    target = Target("token", (int(encoding.ids[place]),), (place,), "", "log_prob")
                    keep = np.zeros((2, len(encoding)), bool)
                    keep[1] = True
                    keep[0, at : at + keeps.target.shape[2]] = keeps.target[b, 0, : len(encoding) - at]
                    keep[0, at + i :] = False
                    if at:
                        keep[0, :at] = keeps.source[b, 0, :at]
                    keep[0, place - 1] = True
                    one, whole = model.score([Question(encoding, target, keep)], removal="delete")[0].value[:, 0]
                    full.append(-whole)
                    if seen[b, i]:
                        assert keep[0].sum() == 5 + task.lead
                        expected, count = expected - one, count + 1
    assert found["perplexity"] == pytest.approx(math.exp(sum(full) / len(full)), rel=1e-5)
    assert found["predictions from 5 tokens"] == count > 3
    assert found["perplexity of 5 tokens"] == pytest.approx(math.exp(expected / count), rel=1e-5)


def test_subsets_are_uniform_and_only_rows_behind_them_count():
    real = torch.ones(20_000, 6, dtype=torch.bool)
    keeps, seen = subsets([Side(real, 1)], 2, generator(0))
    kept = keeps.target[:, 0]
    assert (kept.sum(1) == 2).all() and not kept[:, 5].any() and seen[:, 5].all()
    assert (seen == (torch.arange(6) > torch.where(kept, torch.arange(6), -1).amax(1, keepdim=True))).all()
    assert (kept[:, :5].double().mean(0) - 0.4).abs().max() < 0.02
    given = kept[seen[:, 4]]  # rows that row 4 may be measured in: each pair of what lies before is alike
    assert (given[:, :4].double().mean(0) - 0.5).abs().max() < 0.03


def literal(hf, feed, lora, steps, seed, rate, lead=0):
    """Plain training, written out: eager attention, next-token loss, AdamW, linear decay."""
    hf.set_attn_implementation("eager")
    hf.train()
    optimizer = torch.optim.AdamW(hf.parameters(), weight_decay=0.01, fused=True)
    losses = []
    for step in range(steps):
        torch.manual_seed(seed * 1_000_003 + step)
        ids = torch.tensor([row.target for row in feed(step)])
        logits = hf(input_ids=ids[:, :-1], attention_mask=torch.ones_like(ids[:, :-1]), use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(hf.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = rate * (steps - step) / steps
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 5))
    return losses


def test_the_control_is_plain_training(prose, tmp_path):
    """And what is trained with dropout is something else."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    model = load(hf, tokenizer)
    before = [p.detach().clone() for p in hf.parameters()]
    control = train_compatibility(model, prose, out=tmp_path / "control", keep="none", lr=1e-3, **SMALL)
    other = train_compatibility(model, prose, out=tmp_path / "other", lr=1e-3, mix=1.0, **SMALL)
    assert all(torch.equal(old, new) for old, new in zip(before, hf.parameters(), strict=True))  # the user's own
    material = blocks(model, [Example(prose.read_text(encoding="utf-8"))], length=24, held=0.05, batch=4)
    expected = literal(hf, Feed(material.train, 4, 0), None, 4, 0, 1e-3)
    assert control["losses"] == pytest.approx(expected, abs=2e-5)
    assert other["losses"] != control["losses"]
    saved = load(str(tmp_path / "control")).hf  # a plain folder
    for name, weight in saved.state_dict().items():
        torch.testing.assert_close(weight, hf.state_dict()[name], rtol=0, atol=1e-5)


def test_lora_trains_the_adapter_alone_and_merges_without_peft(prose, tmp_path):
    pytest.importorskip("peft")
    for family in ("gpt2", "llama"):
        hf, tokenizer = tiny_hf(family, "causal", double=False)
        model = load(hf, tokenizer)
        before = {name: weight.clone() for name, weight in hf.state_dict().items()}
        implementation = hf.config._attn_implementation
        out = tmp_path / family
        report = train_compatibility(model, prose, out=out, lora=3, lr=1e-2, **{**SMALL, "steps": 12, "length": 32})
        assert hf.config._attn_implementation == implementation
        assert all(torch.equal(before[name], weight) for name, weight in hf.state_dict().items())
        names = {"training.json", "adapter_model.safetensors", "adapter_config.json"}
        assert {p.name for p in out.iterdir()} == names
        config = json.loads((out / "adapter_config.json").read_text())
        wanted = {
            "gpt2": {"c_attn", "c_proj", "c_fc"},
            "llama": {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"},
        }
        assert set(config["target_modules"]) == wanted[family] and config["r"] == 3
        assert str(tmp_path) not in (out / "adapter_config.json").read_text() + (out / "training.json").read_text()
        assert report == json.loads((out / "training.json").read_text())
        assert report["after"]["perplexity"] < report["before"]["perplexity"]
        fresh, _ = tiny_hf(family, "causal", double=False)
        merged = load(merge(fresh, out), tokenizer)
        task, _ = setup_of(merged, length=32)
        material = blocks(model, [Example(prose.read_text(encoding="utf-8"))], length=32, held=0.05, batch=4)
        with attending(fresh):
            again = task.measured(material.held)
        assert again == pytest.approx(report["after"], rel=1e-4)


def test_the_adapter_of_a_folder_is_opened_with_it_again(prose, tmp_path):
    pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    hf.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    train_compatibility(str(tmp_path / "base"), prose, out=tmp_path / "adapter", lora=2, lr=1e-2, **SMALL)
    expected = merge(hf, tmp_path / "adapter")
    found = load(tmp_path / "adapter")
    ids = torch.tensor([[1, 5, 9, 2]])
    torch.testing.assert_close(found.hf(input_ids=ids).logits, expected(input_ids=ids).logits)


def test_half_precision_adapters_are_measured_as_written(prose, tmp_path):
    pytest.importorskip("peft")
    hf, tokenizer = tiny_hf("llama", "causal", double=False)
    report = train_compatibility(load(hf, tokenizer), prose, out=tmp_path / "h", lora=2, lr=1e-2, half=True, **SMALL)
    from safetensors.torch import load_file

    tensors = load_file(tmp_path / "h" / "adapter_model.safetensors")
    assert {t.dtype for t in tensors.values()} == {torch.float16}
    assert report["bytes"] == (tmp_path / "h" / "adapter_model.safetensors").stat().st_size


def test_frozen_weights_are_trained_in_full_and_computed_positions_are_not(tmp_path):
    """peft's merge_and_unload leaves weights frozen; Marian's positions are a formula."""
    hf, tokenizer = tiny_hf("marian", "seq2seq", double=False)
    hf.requires_grad_(False)
    model = load(hf, tokenizer)
    report = train_compatibility(model, PAIRS, out=tmp_path / "m", lr=1e-3, keep="inverse_length", mix=1.0, **{
        **SMALL, "length": 60, "steps": 8,
    })  # fmt: skip
    after = load(str(tmp_path / "m")).hf.state_dict()
    moved = {name for name, weight in hf.state_dict().items() if not torch.equal(weight, after[name])}
    assert "model.decoder.layers.0.encoder_attn.q_proj.weight" in moved and "model.shared.weight" in moved
    learned = {name for name, p in learner_of(model, Setup()).named_parameters() if p.requires_grad}
    assert learned == {n for n, _ in hf.named_parameters() if "embed_positions" not in n}
    assert report["counts"]["pairs held out"] == 2 and report["own_targets"] is False
    assert all(math.isfinite(loss) for loss in report["losses"])


def test_both_trainings_see_the_same_tokens_and_learn(prose, tmp_path):
    """The control differs in the masks alone; how much dropout helps is measured on real models."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    found = {}
    for keep in ("uniform_length", "none"):
        settings = {**SMALL, "steps": 20, "lr": 1e-2, "held": 0.2, "subset": 4}
        found[keep] = train_compatibility(load(hf, tokenizer), prose, out=tmp_path / keep, keep=keep, **settings)
    dropout, control = found["uniform_length"], found["none"]
    assert dropout["before"] == control["before"] and dropout["losses"] != control["losses"]
    for name in ("perplexity", "perplexity of 4 tokens"):
        assert max(dropout["after"][name], control["after"][name]) < 0.8 * control["before"][name]
    assert dropout["tokens trained on"] == control["tokens trained on"] == 20 * 4 * 24
    assert dropout["counts"] == control["counts"]
    first = next(k for k in range(20) if drawn(rule_of("uniform_length"), 0.5, [SIDE], seed=0, step=k) is not None)
    assert dropout["losses"][:first] == control["losses"][:first]  # until the first coin says so, both are the same
    assert dropout["losses"][first] != control["losses"][first]


def test_bfloat16_keeps_weights_in_float32(prose, tmp_path):
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    report = train_compatibility(load(hf, tokenizer), prose, out=tmp_path / "b", bfloat16=True, lr=1e-3, **SMALL)
    assert next(load(str(tmp_path / "b")).hf.parameters()).dtype == torch.float32
    exact = train_compatibility(load(hf, tokenizer), prose, out=tmp_path / "f", lr=1e-3, **SMALL)
    assert report["losses"] != exact["losses"] and report["losses"] == pytest.approx(exact["losses"], rel=0.05)


def test_a_result_that_can_not_be_written_is_written_by_the_next_call(prose, tmp_path, monkeypatch):
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    model = load(hf, tokenizer)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(hf), "save_pretrained", full)
        with pytest.raises(Unsaved, match="No space left on device.*: make room, and the same command writes it"):
            train_compatibility(model, prose, out=tmp_path / "o", **SMALL)
    assert (tmp_path / "o" / "checkpoint.pt").exists() and not (tmp_path / "o" / "training.json").exists()
    report = train_compatibility(model, prose, out=tmp_path / "o", **SMALL)
    assert len(report["losses"]) == 4 and not (tmp_path / "o" / "checkpoint.pt").exists()
    with pytest.raises(InputError, match="has a finished model: delete it, or choose another out"):
        train_compatibility(model, prose, out=tmp_path / "o", **SMALL)


# -- what a user can get wrong ---------------------------------------------------------------------------------


def test_bad_input_is_told_in_one_sentence(tmp_path, prose):
    gpt = load(*tiny_hf("gpt2", "causal", double=False))
    marian = load(*tiny_hf("marian", "seq2seq", double=False))
    out = tmp_path / "out"
    with pytest.raises(
        InputError, match="gives 0 blocks of 24 tokens to train on, less than a batch of 40: give more text"
    ):
        train_compatibility(gpt, ["A short text about a film."], out=out, **{**SMALL, "batch": 40})
    with pytest.raises(InputError, match="reads at most 64 tokens: give a length up to that, not 128"):
        train_compatibility(gpt, prose, out=out)
    with pytest.raises(InputError, match="does not write text \\(classification\\)"):
        train_compatibility(load(*tiny_hf("bert", "classification")), prose, out=out)
    with pytest.raises(UnknownName, match="no keep rule 'uniform_lenth'. Did you mean 'uniform_length'"):
        train_compatibility(gpt, prose, out=out, keep="uniform_lenth")
    with pytest.raises(InputError, match="mix is a number above 0 and at most 1"):
        train_compatibility(gpt, prose, out=out, mix=1.5)
    with pytest.raises(InputError, match="own_targets is for encoder-decoders"):
        train_compatibility(gpt, prose, out=out, own_targets=True, **SMALL)
    with pytest.raises(InputError, match="tokens bounds the text of a language model"):
        train_compatibility(marian, PAIRS, out=out, tokens=100, **{**SMALL, "length": 60})
    with pytest.raises(InputError, match="unexpected keyword argument 'rank'"):
        train_compatibility(gpt, prose, out=out, rank=3)
    with pytest.raises(InputError, match="less than a batch of 4"):
        train_compatibility(marian, PAIRS[:3], out=out, **{**SMALL, "length": 60})
    strange = [(source, "你好世界，这是一句话") for source, _ in PAIRS]
    with pytest.raises(InputError, match="unknown to the tokenizer of .*own_targets=True"):
        train_compatibility(marian, strange, out=out, **{**SMALL, "length": 60})
    with pytest.raises(InputError, match="no file"):
        train_compatibility(gpt, tmp_path / "no.txt", out=out, **SMALL)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can't be written .*choose another out"):
        train_compatibility(gpt, prose, out=tmp_path / "file" / "in", **SMALL)


def test_a_tokenizer_without_a_target_side_is_refused(tmp_path):
    model = load(*tiny_hf("marian", "seq2seq", double=False))
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(b"the same pieces")
    model.tokenizer.spm_files = [str(tmp_path / "source.spm"), str(tmp_path / "target.spm")]
    with pytest.raises(InputError, match="has no target side of its own.*own_targets=True"):
        train_compatibility(model, PAIRS, out=tmp_path / "o", **{**SMALL, "length": 60})
    (tmp_path / "target.spm").write_bytes(b"other pieces")
    train_compatibility(model, PAIRS, out=tmp_path / "o", **{**SMALL, "length": 60})


def test_the_command(prose, tmp_path):
    from raison.cli.app import app, assemble

    assemble()
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    hf.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    words = ["train", "compatibility", "-m", str(tmp_path / "tiny"), "--data", str(prose), "--steps", "3"]
    words += ["--length", "24", "--batch", "4", "--keep", "bernoulli(p=0.3)", "--lr", "1e-3"]
    runner = CliRunner()
    done = runner.invoke(app, [*words, "--out", str(tmp_path / "one")])
    assert done.exit_code == 0, done.output
    assert "perplexity of 10 tokens: " in done.output and "3/3  loss " in done.output and " left" in done.output
    report = json.loads((tmp_path / "one" / "training.json").read_text())
    assert report["command"] == (
        "raison train compatibility -m tiny --data text.txt --out FOLDER --keep 'bernoulli(p=0.3)' --lr 0.001 "
        "--steps 3 --length 24 --batch 4"
    )
    assert report["keep"] == "bernoulli(p=0.3)" and len(report["history"]) == 4
    for wrong, sentence in (
        (["--keep", "bernouli"], "There is no keep rule 'bernouli'. Did you mean 'bernoulli'?"),
        (["--batch", "4000"], "less than a batch of 4000: give more text, a smaller batch or a smaller length."),
        (["--lora", "0"], "lora is a whole number from 1 up, not 0."),
        ([], "has a finished model: delete it, or choose another out (--out)."),
    ):
        out = ["--out", str(tmp_path / ("one" if not wrong else "two"))]
        told = runner.invoke(app, [*words, *out, *wrong])
        assert told.exit_code == 2 and sentence in told.output, told.output
        lines_told = [line for line in told.output.splitlines() if line.strip() and "Loading weights" not in line]
        assert len(lines_told) == 1  # one sentence


@pytest.mark.full  # starts a process, which takes as long as all others together; the loop itself is tested above
def test_the_command_stopped_by_a_signal_goes_on(prose, tmp_path):
    """A real process, a real SIGINT, one sentence, exit code 130; then the same command finishes."""
    hf, tokenizer = tiny_hf("gpt2", "causal", double=False)
    hf.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    steps = "4000"
    words = ["-m", str(tmp_path / "tiny"), "--data", str(prose), "--length", "24", "--batch", "4", "--steps", steps]
    words += ["--out", str(tmp_path / "out"), "--every", "0", "--lr", "1e-4"]
    run = [sys.executable, "-m", "raison", "train", "compatibility", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(run, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stderr.readline()  # the first step is done
        assert f"/{steps}  " in line, line + process.stderr.read()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "the same command goes on from there." in told and "Traceback" not in told
    done = torch.load(tmp_path / "out" / "checkpoint.pt", weights_only=True)["done"]
    assert 0 < done["step"] < int(steps) and f"Stopped after step {done['step']} of {steps}" in told
