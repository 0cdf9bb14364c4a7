"""Train a span model: all-MiniLM-L6-v2 answers questions of XQuAD (English) by a part of the paragraph.

    python recipes/span.py --data DATA_DIR --out FOLDER

Reads DATA_DIR/xquad_en/xquad.en.json.gz, whose articles are divided into train, dev and test: no paragraph, and no
article, is in two parts. A few hundred questions teach little, so the model first answers cloze questions: statements
of DATA_DIR/wikitext2 and of the training paragraphs, with a number, a name or a noun phrase taken out. Writes a plain
BertForQuestionAnswering with its tokenizer, test.json.gz (the test part, in the publisher's format) and training.json.
Stopping, going on and repeating are those of finetune.py.

What to know: the base's card names SQuAD among the data it was trained on, each question with its paragraph. XQuAD is
drawn from SQuAD's dev part, which the numbers given there seem to leave out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from finetune import (
    Feed,
    Rows,
    above_zero,
    by_length,
    collate,
    command_line,
    finish,
    make_parser,
    normal,
    positive,
    prepare,
    reading,
    run,
    say,
    shuffled,
    started,
    train,
)
from transformers import BertForQuestionAnswering

from raison.core.errors import InputError
from raison.metrics.answer_match import answer_f1, exact_match

MAX_TOKENS, STRIDE = 384, 128
LONGEST = 30  # tokens of an answer
# Shares of the articles; the rest is trained on.
DEV, TEST = 0.1, 0.3


class Question(NamedTuple):
    """A question about a context, and the answers that count as right: where they begin and what they say."""

    text: str
    context: str
    answers: tuple[tuple[int, str], ...]


class Window(NamedTuple):
    """A part of a context that the model reads at once: the characters of each token, none outside the context."""

    question: int
    rows: Rows
    spans: list[tuple[int, int] | None]


# ---- data


def read_articles(data: Path) -> list[dict[str, Any]]:
    place = data / "xquad_en" / "xquad.en.json.gz"
    with reading(place), gzip.open(place, "rt", encoding="utf-8") as file:
        articles: list[dict[str, Any]] = json.load(file)["data"]
    for question in questions(articles):
        for start, text in question.answers:
            if question.context[start : start + len(text)] != text:
                raise InputError(
                    f"An answer of {question.text!r} in {place} is not where it should be: load it anew."
                )
    return articles


def questions(articles: Sequence[dict[str, Any]]) -> list[Question]:
    return [
        Question(
            asked["question"].strip(),
            paragraph["context"],
            tuple((answer["answer_start"], answer["text"]) for answer in asked["answers"]),
        )
        for article in articles
        for paragraph in article["paragraphs"]
        for asked in paragraph["qas"]
    ]


def divide(
    articles: list[dict[str, Any]], seed: int
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, int]]:
    """Articles of each part, and counts. A paragraph of dev or test that stands in train as well is taken out there."""
    order = shuffled(articles, seed)
    dev, test = (max(1, round(part * len(order))) for part in (DEV, TEST))
    parts = {"test": order[:test], "dev": order[test : test + dev], "train": order[test + dev :]}
    if not parts["train"]:
        raise InputError(f"{len(articles)} articles are too few to divide: use the published file.")
    seen: set[str] = set()
    counts: dict[str, int] = {}
    for name in ("test", "dev", "train"):
        own = {
            normal(paragraph["context"])
            for article in parts[name]
            for paragraph in article["paragraphs"]
        }
        counts[f"{name} paragraphs that are in another part, left out"] = len(own & seen)
        parts[name] = [
            {
                **article,
                "paragraphs": [
                    p for p in article["paragraphs"] if normal(p["context"]) not in seen
                ],
            }
            for article in parts[name]
        ]
        seen |= own
    return parts, counts


# ---- cloze questions

SMALL = tuple(
    "a an and are as at be been but by for from had has have he her his in into is it its of on or she that the their "
    "them then there they this to was were when where which while who with also not after before during between".split()
)
MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
ANSWERS = {
    "date": re.compile(
        rf"{MONTH}(?: \d{{1,2}})?(?: ?, \d{{4}}| \d{{4}})?|\d{{1,2}} {MONTH}(?: \d{{4}})?|\b(?:1\d|20)\d\d\b"
    ),
    "number": re.compile(
        r"\b\d[\d,.]*(?: (?:million|billion|percent|%|km|miles|years|people))?(?= )"
    ),
    "name": re.compile(r"\b[A-Z][\w'-]+(?: (?:(?:of|the|de) )?[A-Z][\w'-]+)*"),
    # No tagger is asked: a noun phrase is what stands between an article and a small word or a mark.
    "thing": re.compile(
        r"(?:(?<=\bthe )|(?<=\ban )|(?<=\ba ))[a-z-]{3,}(?: [a-z-]{3,}){0,2}"
        rf"(?= (?:{'|'.join(SMALL)})\b| ?[,.;])"
    ),
}
ASKED = {
    "date": ("when", "in what year", "what year", "when did"),
    "number": ("how many", "how much", "what number of", "how many"),
    "name": ("who", "what", "which", "what is the name of"),
    "thing": ("what", "what kind of", "which", "what type of"),
}
PLACES = frozenset(("in", "at", "near", "from", "to"))


def passages(data: Path) -> Iterator[str]:
    """Paragraphs of WikiText-2, its marks undone, cut into parts of some sentences."""
    for part in ("valid", "test"):
        place = data / "wikitext2" / f"{part}.txt.gz"
        with reading(place), gzip.open(place, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith(" ="):
                    text = re.sub(r" @(.)@ ", r"\1", line.strip()).replace("<unk>", "[UNK]")
                    yield from pieces(text)


def pieces(text: str, words: int = 110) -> Iterator[str]:
    """Whole sentences, together not much over so many words."""
    held: list[str] = []
    for sentence in sentences(text):
        held.append(sentence)
        if sum(len(s.split()) for s in held) >= words:
            yield " ".join(held)
            held = []
    if sum(len(s.split()) for s in held) >= 30:
        yield " ".join(held)


def sentences(text: str) -> list[str]:
    return [found for found in re.split(r"(?<=[.?!]) (?=[A-Z\"])", text) if found]


def cloze(context: str, draw: random.Random) -> Question | None:
    """A question from one statement of the context: what was taken out becomes the answer, an asking word comes first,
    and a part of the other words is lost, so that the question does not simply stand in the context."""
    sentence = draw.choice(sentences(context))
    kind = draw.choice(list(ANSWERS))
    found = [m for m in ANSWERS[kind].finditer(sentence) if usable(m, kind)]
    words = len(sentence.split())
    if not found or not 8 <= words <= 60:
        return None
    match = draw.choice(found)
    before, after = sentence[: match.start()].split(), sentence[match.end() :].split()
    ask = draw.choice(ASKED[kind])
    if kind == "name" and before and before[-1] in PLACES:
        ask = draw.choice(("where", "what place", "what city", "what country"))
    # What is near the answer says most about it; a real question is about ten words long.
    left, right = before[-draw.randint(4, 10) :], after[: draw.randint(3, 10)]
    kept = [
        [w for w in side if draw.random() > (0.35 if w.lower() in SMALL else 0.2)]
        for side in (left, right)
    ]
    kept = [[w for w in side if re.search(r"\w", w) and w != "[UNK]"] for side in kept]
    if sum(len(w) > 3 and w.lower() not in SMALL for side in kept for w in side) < 2:
        return None
    order = kept if draw.random() < 0.7 else kept[::-1]
    start = context.index(sentence) + match.start()
    text = " ".join([ask, *order[0], *order[1]]) + "?"
    return Question(text, context, ((start, match.group().rstrip(" ,.")),))


def usable(match: re.Match[str], kind: str) -> bool:
    words = match.group().split()
    if kind == "number":  # a year is a date
        return not ANSWERS["date"].fullmatch(match.group())
    if kind == "name":  # a lone word at the start of a sentence is a name or not
        return (match.start() > 0 or len(words) > 1) and "UNK" not in words
    return kind != "thing" or not any(word in SMALL for word in words)


def cloze_questions(
    data: Path, articles: Sequence[dict[str, Any]], count: int, seed: int
) -> list[Question]:
    """So many different cloze questions; every passage is asked about before one is asked about again."""
    draw = random.Random(seed)
    found = list(passages(data))
    found += [
        part for article in articles for p in article["paragraphs"] for part in pieces(p["context"])
    ]
    made: dict[tuple[str, str], Question] = {}
    for _ in range(50):
        draw.shuffle(found)
        for passage in found:
            question = cloze(passage, draw)
            if question is not None:
                made.setdefault((question.text, question.context), question)
            if len(made) == count:
                return list(made.values())
    raise InputError(
        f"The texts give {len(made)} cloze questions but {count} are wanted: give a smaller --cloze."
    )


# ---- windows


def windows(tokenizer, asked: Sequence[Question]) -> list[Window]:
    """The questions with their contexts, long contexts in overlapping windows; the labels are [CLS] where the answer is
    not in the window."""
    tokenizer.truncation_side = "right"
    found = tokenizer(
        [q.text for q in asked],
        [q.context for q in asked],
        truncation="only_second",
        max_length=MAX_TOKENS,
        stride=STRIDE,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    made = []
    for i, question in enumerate(found["overflow_to_sample_mapping"]):
        inside = found.sequence_ids(i)
        spans = [
            s if part == 1 else None
            for s, part in zip(found["offset_mapping"][i], inside, strict=True)
        ]
        first, last = place(spans, *asked[question].answers[0])
        rows = {name: found[name][i] for name in tokenizer.model_input_names}
        made.append(
            Window(question, {**rows, "start_positions": [first], "end_positions": [last]}, spans)
        )
    return made


def place(spans: list[tuple[int, int] | None], start: int, text: str) -> tuple[int, int]:
    """The first and the last token of an answer; [CLS] if it is not wholly there."""
    end = start + len(text)
    touched = [i for i, span in enumerate(spans) if span and span[0] < end and span[1] > start]
    real = [span for span in spans if span]
    if not touched or not real or real[0][0] > start or real[-1][1] < end:
        return 0, 0
    return touched[0], touched[-1]


@torch.inference_mode()
def answers(model, seen: Sequence[Window], asked: Sequence[Question], size: int = 16) -> list[str]:
    """The best span of each question, over its windows: the highest sum of the two logits, at most LONGEST tokens."""
    model.eval()
    best: dict[int, tuple[float, str]] = {}
    for group in by_length([window.rows for window in seen], size):
        batch = collate([seen[i].rows for i in group])
        out = model(**{name: batch[name] for name in batch if not name.endswith("positions")})
        for row, i in enumerate(group):
            spans = seen[i].spans
            inside = [t for t, span in enumerate(spans) if span]
            start, end = out.start_logits[row, inside], out.end_logits[row, inside]
            pairs = start[:, None] + end[None, :]
            pairs = pairs.masked_fill(
                ~torch.ones_like(pairs).bool().triu().tril(LONGEST - 1), -torch.inf
            )
            value, at = pairs.flatten().max(0)
            first, last = (spans[inside[k]] for k in divmod(int(at), len(inside)))
            assert first and last
            text = asked[seen[i].question].context[first[0] : last[1]]
            best[seen[i].question] = max(
                best.get(seen[i].question, (-torch.inf, "")), (float(value), text)
            )
    return [best[i][1] for i in range(len(asked))]


# ---- scores


def scores(said: Sequence[str], asked: Sequence[Question]) -> dict[str, float]:
    """Exact match and F1 in percent, each with the gold answer that it agrees with most."""
    gold = [[text for _, text in question.answers] for question in asked]
    exact, near = (list(map(score, said, gold)) for score in (exact_match, answer_f1))
    return {
        "EM": round(100 * sum(exact) / len(exact), 2),
        "F1": round(100 * sum(near) / len(near), 2),
    }


# ---- command


def teach(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    base = prepare(args)
    articles = read_articles(args.data)
    parts, counts = divide(articles, args.seed)
    asked = {name: questions(parts[name]) for name in parts}
    asked["train"] = asked["train"][: args.limit]
    made = cloze_questions(args.data, parts["train"], args.cloze, args.seed) if args.cloze else []
    held = {
        normal(s)
        for name in ("dev", "test")
        for q in asked[name]
        for s in sentences(q.context)
        if len(s) > 40
    }
    told = {normal(s) for q in made for s in sentences(q.context)}
    counts["dev and test sentences that are in cloze passages"] = len(held & told)
    model, tokenizer = started(base, BertForQuestionAnswering)
    seen = {name: windows(tokenizer, asked[name]) for name in asked}
    real = [window.rows for window in seen["train"]]
    feed = Feed(lambda epoch: real, len(real), args.batch, args.seed)
    first = [window.rows for window in windows(tokenizer, made)] if made else []
    warm = Feed(lambda epoch: first, len(first), args.batch, args.seed)
    before = warm.per_epoch if made else 0
    total = before + max(1, round(args.epochs * feed.per_epoch))
    sizes = {name: len(asked[name]) for name in asked}
    say(
        f"questions {sizes}, {before} steps on {len(made)} cloze questions, then {total - before}; {counts}"
    )

    def look() -> dict[str, float]:
        return scores(answers(model, seen["dev"], asked["dev"]), asked["dev"])

    fed = lambda step: warm(step) if step < before else feed(step - before)  # noqa: E731
    seconds, history = train(model, fed, args, total, 2 * feed.per_epoch, look)
    cpu = time.process_time()
    measured = {
        name: scores(answers(model, seen[name], asked[name]), asked[name])
        for name in ("dev", "test")
    }
    report = {
        "task": "span",
        "base": "all-MiniLM-L6-v2" if args.base is None else base.name,
        "class": "BertForQuestionAnswering",
        "max tokens": MAX_TOKENS,
        "dev": measured["dev"],
        "test": measured["test"],
        "questions": {**sizes, "cloze": len(made)},
        "paragraphs": {name: sum(len(a["paragraphs"]) for a in parts[name]) for name in parts},
        "articles": {name: len(parts[name]) for name in parts},
        "overlap": counts,
        "seed": args.seed,
        "steps": total,
        "on dev": history,
        "CPU minutes of training": round(seconds / 60, 1),
        "CPU minutes of testing": round((time.process_time() - cpu) / 60, 1),
        "command": command_line("span.py", parser, args),
    }
    with gzip.GzipFile(args.out / "test.json.gz", "wb", mtime=0) as file:
        file.write(json.dumps({"data": parts["test"], "version": "1.1"}).encode())
    finish(args.out, model, tokenizer, report)


def whole(text: str) -> int:
    return 0 if text == "0" else positive(text)


def main(words: Sequence[str] | None = None) -> int:
    parser = make_parser(
        "Train a span model: all-MiniLM-L6-v2 answers questions of XQuAD (English)."
    )
    parser.set_defaults(batch=16)
    parser.add_argument("--limit", type=positive, help="questions to train on (all)")
    parser.add_argument("--epochs", type=above_zero, default=6, help="over the questions")
    parser.add_argument(
        "--cloze", type=whole, default=8000, help="cloze questions to begin with; 0 for none"
    )
    args = parser.parse_args(words)
    return run(lambda: teach(parser, args))


if __name__ == "__main__":
    sys.exit(main())
