"""The training commands: a few steps on tiny data, stopping and going on, what is left out, scores of answers."""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import signal
import tarfile
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizerFast,
)

import raison

WORDS = (
    "the a film was good bad dull bright great poor and of in on town river who when what built old bridge "
    "is how many people live lived there king queen it first second stone house near ? . ,"
).split()
YEARS = [str(year) for year in range(1800, 1830)]


@pytest.fixture
def recipes(open_recipe):
    """Both commands as modules; whatever they set for the whole process is set back."""
    import transformers

    exact, level = (
        torch.are_deterministic_algorithms_enabled(),
        transformers.logging.get_verbosity(),
    )
    state = torch.get_rng_state()
    yield open_recipe("finetune"), open_recipe("span")
    torch.use_deterministic_algorithms(exact)
    torch.set_rng_state(state)
    transformers.logging.set_verbosity(level)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A tiny encoder with a tokenizer of its own."""
    folder = tmp_path_factory.mktemp("base")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(WORDS + YEARS)]
    tokenizer = BertTokenizerFast(vocab={word: i for i, word in enumerate(vocabulary)})
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=384,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def packed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


def sentence(draw: random.Random, words: int) -> str:
    return " ".join(draw.choice(WORDS[:18]) for _ in range(words))


@pytest.fixture
def yelp(tmp_path) -> Path:
    """Sentences whose label is told by one word; 7 training sentences stand in test, in other letters."""
    draw = random.Random(0)
    for label, word in enumerate(("dull", "bright")):
        rows = {
            part: [f"{sentence(draw, 9)} {word} {y} {part[0]}" for y in YEARS * 3]
            for part in ("dev", "test")
        }
        rows["dev"] += [f"{row.upper()} !" for row in rows["test"][: 3 + label]]
        for part, lines in rows.items():
            packed(
                tmp_path / "yelp_sentences" / f"sentiment.{part}.{label}.gz",
                "\n".join(lines) + "\n",
            )
    return tmp_path


def report(folder: Path) -> dict:
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def shortened(finetune, monkeypatch, **changes) -> None:
    """Less text held out than the tiny sets have."""
    from dataclasses import replace

    for name in finetune.TASKS:
        monkeypatch.setitem(
            finetune.TASKS, name, replace(finetune.TASKS[name], **{"dev": 20, **changes})
        )


def test_it_learns_and_the_folder_is_a_plain_model(recipes, yelp, base, monkeypatch, capsys):
    finetune, _ = recipes
    shortened(finetune, monkeypatch)
    out = yelp / "out"
    words = [
        "--task",
        "yelp",
        "--data",
        str(yelp),
        "--out",
        str(out),
        "--base",
        str(base),
        "--lr",
        "3e-3",
        "--batch",
    ]
    words += ["8", "--epochs", "8", "--seed", "1"]
    assert finetune.main(words) == 0
    told = report(out)
    assert told["overlap"]["left out, in test"] == 7
    assert told["texts"] == {"train": 160, "dev": 20, "test": 180, "test that fit": 180}
    assert told["steps"] == 160
    assert told["test accuracy"] > 0.9  # one word decides
    assert told["command"] == (
        "python recipes/finetune.py --data DATA_DIR --out FOLDER --base BASE_DIR "
        "--seed 1 --batch 8 --lr 0.003 --task yelp --epochs 8.0"
    )
    assert not (out / "checkpoint.pt").exists()
    # the accuracy again, by the library that users have
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(out),
        AutoTokenizer.from_pretrained(out),
    )
    rows = finetune.read_yelp(yelp, "test")
    logits = model(
        **tokenizer([row.first for row in rows], padding=True, return_tensors="pt")
    ).logits
    right = logits.argmax(-1) == torch.tensor([row.label for row in rows])
    assert told["test accuracy"] == round(right.double().mean().item(), 4)
    assert model.config.id2label == {0: "negative", 1: "positive"}
    assert raison.explain(raison.load(str(out)), rows[0].first).target.text in (
        "negative",
        "positive",
    )
    assert finetune.main(words) == 2
    assert (
        "has a finished model: delete it, or choose another out (--out)." in capsys.readouterr().err
    )


def test_stopped_and_continued_is_the_same_as_not_stopped(recipes, yelp, base, monkeypatch, capsys):
    finetune, _ = recipes
    shortened(finetune, monkeypatch)
    words = [
        "--task",
        "yelp",
        "--data",
        str(yelp),
        "--base",
        str(base),
        "--batch",
        "16",
        "--epochs",
        "2",
        "--out",
    ]
    assert finetune.main([*words, str(yelp / "whole")]) == 0

    class Interrupted(finetune.Feed):
        def __call__(self, step):
            if step == 12:
                signal.raise_signal(signal.SIGINT)
            return super().__call__(step)

    with monkeypatch.context() as patch:
        patch.setattr(finetune, "Feed", Interrupted)
        assert finetune.main([*words, str(yelp / "parts")]) == 130
    assert (
        "Stopped after step 13 of 20: the same command goes on from there."
        in capsys.readouterr().err
    )
    assert not (yelp / "parts" / "training.json").exists()
    assert finetune.main([*words, str(yelp / "parts"), "--lr", "1e-5"]) == 2
    assert "was made with another lr: delete it" in capsys.readouterr().err
    assert finetune.main([*words, str(yelp / "parts")]) == 0
    assert "going on after step 13" in capsys.readouterr().err
    weights = [(yelp / name / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]
    whole, parts = report(yelp / "whole"), report(yelp / "parts")
    assert whole["after each epoch"] == parts["after each epoch"]


def test_what_is_missing_or_broken_is_told_in_one_sentence(recipes, yelp, base, tmp_path, capsys):
    finetune, span = recipes
    words = ["--data", str(yelp), "--out", str(tmp_path / "out"), "--base", str(base)]
    assert finetune.main([*words, "--task", "imdb"]) == 2
    assert "There is no file" in capsys.readouterr().err
    assert span.main(words) == 2
    assert (
        "xquad.en.json.gz: give the folder of the data sets as --data." in capsys.readouterr().err
    )
    cut = (yelp / "yelp_sentences" / "sentiment.dev.0.gz").read_bytes()[:200]
    packed(yelp / "xquad_en" / "xquad.en.json.gz", '{"data": [')
    assert span.main(words) == 2
    assert "xquad.en.json.gz can't be read" in capsys.readouterr().err
    packed(yelp / "qqp" / "dev.tsv.gz", "1\tone\ttwo\t3\n0\tone\ttwo\n")
    assert finetune.main([*words, "--task", "qqp"]) == 2
    assert "Line 2 of" in capsys.readouterr().err
    assert finetune.main([*words[2:], "--data", str(tmp_path / "no"), "--task", "qqp"]) == 2
    assert "There is no folder" in capsys.readouterr().err
    (tmp_path / "out" / "checkpoint.pt").write_bytes(b"not a checkpoint")
    shrunk = [*words, "--task", "yelp", "--limit", "20"]
    finetune.TASKS["yelp"] = finetune.Task(
        finetune.SIDES, finetune.read_yelp, ("dev", "test"), dev=20, epochs=1
    )
    assert finetune.main(shrunk) == 2
    assert "delete it to start anew" in capsys.readouterr().err
    assert finetune.main([*words, "--task", "yelp", "--base", str(tmp_path)]) == 2
    assert "has no encoder to start from" in capsys.readouterr().err
    (yelp / "yelp_sentences" / "sentiment.dev.0.gz").write_bytes(cut)
    assert finetune.main(shrunk) == 2
    assert "sentiment.dev.0.gz can't be read" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert finetune.main([*shrunk, "--out", str(tmp_path / "file" / "in")]) == 2
    assert "choose another out (--out)" in capsys.readouterr().err


def test_pairs_that_share_a_question_are_left_out(recipes):
    finetune, _ = recipes
    pair = finetune.Text
    pool = [
        pair("Who lived there?", "When was it built?", 0),  # in test, the other way round
        pair("Who lived there?", "What is old?", 1),  # one question in test
        pair("What is a town?", "what is a town", 1),
        pair("What is a river?", "Who is the king?", 0),
        pair("Who is the king?", "What is a river", 0),  # the same pair again
        pair("...", "What is stone?", 0),  # no letter
        *(pair(f"What is {i}?", f"Who is {i}?", i % 2) for i in range(20)),
    ]
    test = [pair("when was it built", "who lived there", 1), pair("Near?", "Far?", 0)]
    task = finetune.Task(("no", "yes"), finetune.read_qqp, ("dev", "test"), dev=4, epochs=1)
    args = argparse.Namespace(seed=0, limit=None, test=1)
    parts, counts = finetune.divide(task, pool, test, args)
    assert [
        counts[f"left out, {why}"]
        for why in ("in test", "one question in test", "repeated or empty")
    ] == [1, 1, 2]
    assert {name: len(rows) for name, rows in parts.items()} == {"train": 18, "dev": 4, "test": 1}
    texts = {
        name: {key for row in rows for key in finetune.keys(row)} for name, rows in parts.items()
    }
    assert not texts["train"] & texts["dev"] and not (texts["train"] | texts["dev"]) & {
        "wholivedthere",
        "near",
    }


def test_reviews_and_pairs_are_read_as_published(recipes, tmp_path):
    finetune, _ = recipes
    (tmp_path / "imdb").mkdir()
    with tarfile.open(tmp_path / "imdb" / "aclImdb_subset10000.tar.gz", "w:gz") as tar:
        for name, text in {
            "train/pos/1_9": "Good.<br /><br />Very.",
            "train/neg/1_2": "Bad",
            "test/pos/0_7": "é",
        }.items():
            member = tarfile.TarInfo(f"aclImdb/{name}.txt")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    assert finetune.read_imdb(tmp_path, "train") == [("Bad", None, 0), ("Good. Very.", None, 1)]
    assert finetune.read_imdb(tmp_path, "test") == [("é", None, 1)]
    (tmp_path / "qqp").mkdir()
    (tmp_path / "qqp" / "dev.tsv.gz").write_bytes(gzip.compress(b"1\tone \xe2?\ttwo\x0bthree\t3\n"))
    assert finetune.read_qqp(tmp_path, "dev") == [("one \ufffd?", "two\x0bthree", 1)]


def test_every_row_comes_once_an_epoch(recipes):
    finetune, _ = recipes
    rows = [{"input_ids": [1] * (3 + i % 7), "labels": [i]} for i in range(53)]
    feed = finetune.Feed(lambda epoch: rows, len(rows), 8, 5)
    assert feed.per_epoch == 7
    epochs = [[feed(epoch * 7 + step)["labels"].tolist() for step in range(7)] for epoch in (0, 1)]
    for batches in epochs:
        assert sorted(i for batch in batches for i in batch) == list(range(53))
    assert epochs[0] != epochs[1]
    again = finetune.Feed(lambda epoch: rows, len(rows), 8, 5)
    assert again(9)["labels"].tolist() == epochs[1][2]  # without what came before


# -- spans ---------------------------------------------------------------------------------------------------


@pytest.fixture
def xquad(tmp_path) -> Path:
    """Articles about bridges: the answer is the one year of the paragraph."""
    draw = random.Random(1)
    articles = []
    for i in range(10):
        paragraphs = []
        for k in range(20):
            year = draw.choice(YEARS[:4])
            before = f"{sentence(draw, 6)} . the old stone bridge {sentence(draw, draw.randint(0, 12))} was built in "
            context = f"{before}{year} . {sentence(draw, 7)} ."
            asked = {"id": f"{i}-{k}", "question": "when was the bridge built ?"}
            asked["answers"] = [{"answer_start": len(before), "text": year}]
            paragraphs.append({"context": context, "qas": [asked]})
        articles.append({"title": str(i), "paragraphs": paragraphs})
    packed(
        tmp_path / "xquad_en" / "xquad.en.json.gz", json.dumps({"data": articles, "version": "1.1"})
    )
    lines = [" = The Town = \n"]
    for year in YEARS:
        lines.append(
            f" The old stone bridge near the town was built in {year} and the king lived there in the first house . "
            f"It is a great town on the river , and many people live in the second house of the old queen . \n"
        )
    for part in ("valid", "test"):
        packed(tmp_path / "wikitext2" / f"{part}.txt.gz", "".join(lines))
    return tmp_path


def test_a_span_model_learns_where_the_year_stands(recipes, xquad, base, capsys):
    _, span = recipes
    out = xquad / "out"
    words = [
        "--data",
        str(xquad),
        "--out",
        str(out),
        "--base",
        str(base),
        "--batch",
        "8",
        "--lr",
        "3e-3",
    ]
    words += ["--cloze", "40", "--epochs", "12"]
    assert span.main(words) == 0
    told = report(out)
    assert told["questions"] == {"test": 60, "dev": 20, "train": 120, "cloze": 40}
    assert told["articles"] == {"test": 3, "dev": 1, "train": 6}
    assert told["steps"] == 5 + 12 * 15
    assert told["test"]["EM"] > 80  # the only year
    with gzip.open(out / "test.json.gz", "rt", encoding="utf-8") as file:
        held = json.load(file)["data"]
    asked = span.questions(held)
    assert len(asked) == 60
    model, tokenizer = (
        AutoModelForQuestionAnswering.from_pretrained(out),
        AutoTokenizer.from_pretrained(out),
    )
    said = span.answers(model, span.windows(tokenizer, asked), asked)
    assert span.scores(said, asked) == told["test"]
    first = raison.explain(raison.load(str(out)), (asked[0].text, asked[0].context))
    assert first.target.text == said[0]


def test_parts_share_no_paragraph(recipes):
    _, span = recipes
    asked = [{"question": "?", "answers": [{"answer_start": 0, "text": "p"}]}]
    articles = [
        {
            "title": str(i),
            "paragraphs": [
                {"context": f"p {min(i, 8)}", "qas": asked},
                {"context": f"q{i}", "qas": asked},
            ],
        }
        for i in range(12)  # the last four articles begin alike
    ]
    for seed in range(6):
        parts, counts = span.divide(articles, seed)
        seen = [
            {span.normal(p["context"]) for a in parts[name] for p in a["paragraphs"]}
            for name in parts
        ]
        assert sum(map(len, seen)) == len(set.union(*seen)) == 21
        holding = [
            any(int(a["title"]) >= 8 for a in parts[name]) for name in ("test", "dev", "train")
        ]
        assert sum(counts.values()) == sum(holding) - 1


def test_long_contexts_are_read_in_windows(recipes, base):
    _, span = recipes
    tokenizer = AutoTokenizer.from_pretrained(base)
    context = "the town . " * 150 + "the king lived in 1815 ."  # 456 tokens
    question = span.Question("when ?", context, ((context.index("1815"), "1815"),))
    seen = span.windows(tokenizer, [question, span.Question("who ?", "the king", ((4, "king"),))])
    assert [window.question for window in seen] == [0, 0, 1]
    assert seen[0].rows["start_positions"] == [0]  # cut off: [CLS]
    for window, text in zip(seen[1:], ("1815", "king"), strict=True):
        start, end = window.rows["start_positions"][0], window.rows["end_positions"][0]
        assert tokenizer.decode(window.rows["input_ids"][start : end + 1]) == text

    class Pointer(torch.nn.Module):
        """Points at the year, wherever it is."""

        def forward(self, input_ids, **rest):
            hit = (input_ids == tokenizer.convert_tokens_to_ids("1815")).float()
            return argparse.Namespace(start_logits=hit, end_logits=hit)

    assert span.answers(Pointer(), seen[:2], [question]) == ["1815"]


def test_scores_are_those_of_squad(recipes):
    _, span = recipes
    asked = [
        span.Question("?", "", ((0, "The  Denver Broncos!"), (0, "Broncos"))),
        span.Question("?", "", ((0, "in 1815"),)),
        span.Question("?", "", ((0, "a"),)),
    ]
    assert span.scores(["denver broncos", "1815 and 1816", "the"], asked) == {
        "EM": pytest.approx(66.67),
        "F1": pytest.approx(100 * (1 + 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2) + 1) / 3, abs=0.005),
    }


def test_cloze_questions_hide_their_answers(recipes, xquad):
    _, span = recipes
    made = span.cloze_questions(xquad, [], 60, 3)
    assert made == span.cloze_questions(xquad, [], 60, 3) != span.cloze_questions(xquad, [], 60, 4)
    for question in made:
        (start, text), *rest = question.answers
        assert not rest and question.context[start : start + len(text)] == text
    years = [q for q in made if q.answers[0][1] in YEARS]
    assert years and all(
        q.answers[0][1] not in q.text and q.text.startswith(("when", "in what", "what"))
        for q in years
    )
    with pytest.raises(raison.core.errors.InputError, match="give a smaller --cloze"):
        span.cloze_questions(xquad, [], 100_000, 0)
