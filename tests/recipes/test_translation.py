"""The training of a translator: what is left out, tokens, batches, the rate, the loss, stopping and going on, BLEU."""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import math
import signal
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import raison
from raison.core.errors import InputError
from tests.helpers.paths import RECIPES

FILES = (
    "train",
    "val",
    "test_2016_flickr",
    "test_2017_flickr",
    "test_2017_mscoco",
    "test_2018_flickr",
)
WHO = {"Mann": "man", "Hund": "dog", "Vogel": "bird", "Junge": "boy"}
DOES = {"schläft": "sleeps", "läuft": "runs", "singt": "sings"}
WHERE = {
    "im Haus": "in the house",
    "am Fluss": "at the river",
    "im Park": "in the park",
    "am See": "at the lake",
}
HOW = {"grosser": "big", "kleiner": "small", "alter": "old", "junger": "young"}


@pytest.fixture
def translation(open_recipe):
    """The command as a module; whatever it sets for the whole process is set back."""
    import transformers

    pytest.importorskip("sacrebleu")
    exact, level = (
        torch.are_deterministic_algorithms_enabled(),
        transformers.logging.get_verbosity(),
    )
    filled, state = torch.utils.deterministic.fill_uninitialized_memory, torch.get_rng_state()
    open_recipe("finetune")
    yield open_recipe("translation")
    torch.use_deterministic_algorithms(exact)
    torch.utils.deterministic.fill_uninitialized_memory = filled
    torch.set_rng_state(state)
    transformers.logging.set_verbosity(level)


def sentences() -> list[tuple[str, str]]:
    """192 captions that a dictionary translates."""
    return [
        (
            f"Ein {how} {who} {does} {where}.",
            f"A {HOW[how]} {WHO[who]} {DOES[does]} {WHERE[where]}.",
        )
        for who in WHO
        for does in DOES
        for where in WHERE
        for how in HOW
    ]


@pytest.fixture
def data(tmp_path) -> Path:
    """Every sixth caption is held out, in one part each; three pairs of train stand in test, on one side or on both."""
    pairs = sentences()
    held = pairs[::6]
    parts = {name: held[i::5] for i, name in enumerate(FILES[1:])}
    (german, english), (_, other) = parts["test_2016_flickr"][:2]
    parts["train"] = [pair for pair in pairs if pair not in held]
    parts["train"] += [
        (german, english),
        (german.upper(), "Someone sleeps ."),
        ("Jemand singt.", f'"{other}"'),
    ]
    folder = tmp_path / "multi30k_deen"
    folder.mkdir()
    for name, rows in parts.items():
        for side, language in enumerate(("de", "en")):
            with gzip.open(folder / f"{name}.{language}.gz", "wt", encoding="utf-8") as file:
                file.write("".join(f"{row[side]}\n" for row in rows))
    return tmp_path


SMALL = "--pieces 400 --width 32 --inner 64 --layers 1 --heads 2 --tokens 512 --dropout 0.0 --lr 1e-2 --warm 20".split()


def report(folder: Path) -> dict:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def test_it_learns_and_the_folder_is_a_plain_model(translation, data, capsys):
    out = data / "out"
    words = ["--data", str(data), "--out", str(out), *SMALL, "--epochs", "12", "--joined", "0.2"]
    assert translation.main(words) == 0
    told = report(out)
    assert told["pairs"]["train"] == 160 and told["overlap"]["left out in all"] == 3
    assert (
        told["overlap"]["left out, german in test"] == 2
        and told["overlap"]["left out, english in test"] == 2
    )
    assert told["BLEU, greedy"]["test"] > 60 and told["BLEU, 5 beams"]["test"] > 60
    assert told["command"] == (
        "python recipes/translation.py --data DATA_DIR --out FOLDER --seed 0 --epochs 12.0 --tokens 512 --joined 0.2 "
        "--pieces 400 --width 32 --inner 64 --layers 1 --heads 2 --dropout 0.0 --lr 0.01 --warm 20"
    )
    assert not (out / "checkpoint.pt").exists()
    # BLEU again, by the libraries that users have, one sentence at a time
    import sacrebleu

    model, tokenizer = (
        AutoModelForSeq2SeqLM.from_pretrained(out).eval(),
        AutoTokenizer.from_pretrained(out),
    )
    pairs = translation.read(data, "test")
    said = []
    for pair in pairs:
        written = model.generate(**tokenizer(pair.german, return_tensors="pt"))
        said.append(tokenizer.decode(written[0], skip_special_tokens=True))
    score = sacrebleu.corpus_bleu(said, [[pair.english for pair in pairs]]).score
    assert told["BLEU, greedy"]["test"] == round(score, 2)
    # and the library that this is for
    explained = raison.explain(raison.load(str(out)), pairs[0].german)
    assert explained.target.text == said[0]
    assert (
        raison.rationalize(raison.load(str(out)), pairs[0].german, target=1).target.ids
        == explained.target.ids[1:2]
    )
    assert translation.main(words) == 2
    assert (
        "has a finished model: delete it, or choose another out (--out)." in capsys.readouterr().err
    )


def test_stopped_and_continued_is_the_same_as_not_stopped(translation, data, monkeypatch, capsys):
    words = ["--data", str(data), *SMALL, "--dropout", "0.3", "--epochs", "2", "--out"]
    assert translation.main([*words, str(data / "whole")]) == 0
    total = report(data / "whole")["steps"]
    assert total > 8
    plain, called = translation.collate, []

    def interrupted(*args):
        called.append(1)
        if len(called) == 5:
            signal.raise_signal(signal.SIGINT)
        return plain(*args)

    with monkeypatch.context() as patch:
        patch.setattr(translation, "collate", interrupted)
        assert translation.main([*words, str(data / "parts")]) == 130
    assert (
        f"Stopped after step 5 of {total}: the same command goes on from there."
        in capsys.readouterr().err
    )
    assert not (data / "parts" / "training.json").exists()
    assert translation.main([*words, str(data / "parts"), "--lr", "1e-5"]) == 2
    assert "was made with another lr: delete it" in capsys.readouterr().err
    assert translation.main([*words, str(data / "parts")]) == 0
    weights = [(data / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def test_what_is_missing_or_wrong_is_told_in_one_sentence(
    translation, data, tmp_path, monkeypatch, capsys
):
    def refused(*words: str) -> str:
        assert translation.main(["--out", str(tmp_path / "out"), *words]) in (1, 2)
        (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
        return line

    assert "There is no folder" in refused("--data", str(tmp_path / "no"))
    assert "There is no folder 'multi30k_deen'" in refused("--data", str(RECIPES))
    assert "give at least 259" in refused("--data", str(data), "--pieces", "200")
    assert "--width 30 is not an even multiple of --heads 4" in refused(
        "--data", str(data), "--width", "30"
    )
    (tmp_path / "file").write_text("")
    assert "choose another out (--out)" in refused(
        "--data", str(data), "--out", str(tmp_path / "file" / "in")
    )
    (data / "multi30k_deen" / "val.en.gz").write_bytes(b"")
    assert "val.de" in refused("--data", str(data))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install 'raison[bleu]'" in refused("--data", str(data))


def test_one_tokenizer_for_both_sides(translation, tmp_path):
    texts = [side for pair in sentences() for side in pair]
    tokenizer = translation.make_tokenizer(texts, 400)
    again = translation.make_tokenizer(texts, 400)
    assert tokenizer.backend_tokenizer.to_str() == again.backend_tokenizer.to_str()
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(
        '{"model_type": "marian"}'
    )  # which has a tokenizer class of its own
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    for text in ("Ein Mann läuft im Park.", "A man, 🙂 runs .", "x  y", "日本"):
        ids = loaded(text)["input_ids"]
        assert ids == tokenizer(text)["input_ids"] == loaded(text_target=text)["input_ids"]
        assert ids[-1] == loaded.eos_token_id and not set(ids[:-1]) & set(loaded.all_special_ids)
        assert loaded.decode(ids, skip_special_tokens=True) == text
    text = "Ein Mann läuft."
    found = loaded(text, return_offsets_mapping=True)
    assert [text[a:b] for a, b in found["offset_mapping"]] == ["Ein", "Mann", "läuft", ".", ""]
    pairs = [translation.Pair(*pair) for pair in sentences()[:2]]
    both = translation.joined(translation.encode(loaded, pairs))
    assert both.source == loaded(" ".join(pair.german for pair in pairs))["input_ids"]
    assert both.target == loaded(" ".join(pair.english for pair in pairs))["input_ids"]


def test_every_pair_comes_once_an_epoch(translation):
    draw = torch.Generator().manual_seed(3)
    sizes = torch.randint(2, 30, (211, 2), generator=draw).tolist()
    rows = [translation.Rows([5] * a, [6] * b) for a, b in sizes] + [
        translation.Rows([5] * 300, [6] * 4)
    ]  # too long
    steps = translation.plan(rows, 200, 2, 0.3, 7)
    assert steps == translation.plan(rows, 200, 2, 0.3, 7) != translation.plan(rows, 200, 2, 0.3, 8)
    first = translation.plan(rows, 200, 1, 0.3, 7)
    assert steps[: len(first)] == first and sorted(steps[len(first) :]) != sorted(first)
    for epoch in (first, steps[len(first) :]):
        pairs = [i for group in epoch for item in group for i in item]
        left = set(range(212)) - set(pairs)
        assert (
            len(pairs) == len(set(pairs)) and 211 in left and len(left) <= 2
        )  # at most its partner goes with it
        assert sum(len(item) == 2 for group in epoch for item in group) in (30, 31)
        for group in epoch:
            made = [translation.joined([rows[i] for i in item]) for item in group]
            width = sum(max(len(row[side]) for row in made) for side in (0, 1))
            assert len(group) * width <= 200 or len(group) == 1
    half = translation.plan(rows, 200, 0.5, 0.3, 7)
    assert half == first[: len(half)] and abs(2 * len(half) - len(first)) <= 1


def test_the_rate_is_the_papers_until_it_falls_to_zero(translation):
    course = translation.Falling(Path("."), 1000, rise=100, cool=0.2)
    rates = [course.rate(step) for step in range(1000)]
    for step in range(800):
        # Vaswani et al. 2017, equation 3, with d^-0.5 such that the peak is 1
        paper = math.sqrt(100) * min((step + 1) ** -0.5, (step + 1) * 100**-1.5)
        assert rates[step] == pytest.approx(paper, rel=1e-12)
    assert max(rates) == rates[99] == 1.0
    assert rates[-1] == pytest.approx(math.sqrt(0.1) / 200)


def test_the_loss_is_the_smoothed_cross_entropy_without_padding(translation):
    tokenizer = translation.make_tokenizer([side for pair in sentences() for side in pair], 400)
    torch.manual_seed(0)
    args = argparse.Namespace(width=16, heads=2, layers=1, inner=24, dropout=0.0)
    model = translation.make_model(tokenizer, args).double().eval()
    rows = translation.encode(
        tokenizer, [translation.Pair(*sentences()[0]), translation.Pair("Ein Hund.", "A dog.")]
    )
    batch = translation.collate(rows, tokenizer.pad_token_id, tokenizer.bos_token_id)
    total, count, smooth = 0.0, 0, 0.0
    for row in rows:  # one pair at a time, no padding, by the model's own forward pass
        ids = torch.tensor([row.target])
        given = torch.tensor([[tokenizer.bos_token_id, *row.target[:-1]]])
        with torch.no_grad():
            out = model(
                input_ids=torch.tensor([row.source]), decoder_input_ids=given
            ).logits.log_softmax(-1)[0]
            own = model(input_ids=torch.tensor([row.source]), labels=ids).loss
        picked = out[range(len(row.target)), row.target]
        assert own.item() == pytest.approx(
            -picked.mean().item(), rel=1e-9
        )  # transformers shifts in the same way
        total -= picked.sum().item()
        smooth -= (0.9 * picked + 0.1 * out.mean(-1)).sum().item()
        count += len(row.target)
    with torch.no_grad():
        assert translation.losses(model, batch, smoothing=0.0).item() == pytest.approx(
            total / count, rel=1e-6
        )
        assert translation.losses(model, batch, smoothing=0.1).item() == pytest.approx(
            smooth / count, rel=1e-6
        )
    found = translation.perplexity(
        model, rows, tokenizer.pad_token_id, tokenizer.bos_token_id, size=1
    )
    assert found == pytest.approx(math.exp(total / count), rel=1e-6)


def test_what_stands_in_a_later_part_is_left_out(translation):
    pair = translation.Pair
    held = {name: [] for name in translation.TESTS}
    held["test"] = [pair("Ein Mann.", "A man.")]
    held["test_2018"] = [pair("Ein Hund.", "A dog.")]
    held["val"] = [pair("Ein Mann!", "Some man."), pair("Ein Haus.", "A house.")]
    train = [
        pair("EIN MANN", "One man"),  # in test and in val
        pair("Der Hund.", "A dog"),
        pair("Ein Haus", "A house"),
        pair("...", "A tree."),
        pair("Ein Baum.", "A tree."),
    ]
    kept, dev, counts = translation.divide(train, held)
    assert kept == [pair("Ein Baum.", "A tree.")] and dev == [pair("Ein Haus.", "A house.")]
    assert counts["left out, german in test"] == counts["left out, english in test_2018"] == 1
    assert counts["left out, german in val"] == 2 and counts["left out, english in val"] == 1
    assert counts["left out, empty"] == 1 and counts["left out in all"] == 4
    assert counts["dev, left out in all"] == 1


def test_the_published_files(translation, data_dir):
    """Counts of the data set's authors; none of the 2016 test is in train."""
    if not (data_dir / "multi30k_deen").is_dir():
        pytest.skip("needs Multi30k in the folder of the data sets")
    held = {name: translation.read(data_dir, name) for name in (*translation.TESTS, "val")}
    assert {name: len(rows) for name, rows in held.items()} == {
        "test": 1000,
        "test_2017": 1000,
        "test_2017_mscoco": 461,
        "test_2018": 1071,
        "val": 1014,
    }
    kept, dev, counts = translation.divide(translation.read(data_dir, "train"), held)
    assert len(dev) == 1014
    assert counts["read for training"] == 29_000 and len(kept) == 29_000 - counts["left out in all"]
    assert counts["left out, german in test"] == counts["left out, english in test"] == 0
    assert counts["left out, german in test_2017"] == 4 and counts["left out in all"] == 11
    with pytest.raises(InputError, match="give at least 259"):
        translation.make_tokenizer([], 100)
