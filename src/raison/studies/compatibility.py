"""Can rationales of this model be taken at face value? How it behaves where most of the context is missing (P0).

A rationale rests on f(y_t | y_S), the model read on a part of its context, which it may never have seen in training.
Three things are measured, without any training:

    subsets       perplexity of the next token given the whole context, and given random parts of it by size (the token
                  before the target always stays, as in a search); a model that knows what it does not know gets better
                  with every token that it is given, and is never worse than the frequencies of the tokens alone
    repetition    f(y = w | w) where only w is left, by its position (P0 Figure 4), and where one other word is left as
                  well, by the distance between the two: with rotary positions the first curve is flat by construction
    truth         p(y_4 | y_1, y_3) = Σ_k f(k | y_1) f(y_3 | y_1 k) f(y_4 | y_1 k y_3) / Σ_k f(k | y_1) f(y_3 | y_1 k),
                  the model's own prediction with y_2 marginalised out, against f(y_4 | y_1, y_3) with y_2 left out; k
                  runs over the likeliest tokens, and the share of the mass that they cover is told

Vafa et al. 2021 (P0), section 4. Encoder-decoders are measured by subsets of source and prefix alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison.core import progress
from raison.core.errors import InputError, Unsupported
from raison.core.json_record import Record, plain
from raison.core.records import Encoding, Example, Target
from raison.datasets.open import open_dataset
from raison.metrics.statistics import mean_interval
from raison.models.float64 import precise
from raison.models.protocol import Model, Question, TargetSpec
from raison.models.runner.score_cache import Memory
from raison.studies.repetition import frequent_words, repetition_of_word

__all__ = ["Compatibility", "blocks", "check_compatibility", "losses_of", "texts_of"]

SIZES = (1, 2, 5, 10, 20, 50)  # kept tokens, the one before the target among them
WORDS, FURTHEST = 8, 40  # frequent words that are repeated, and how far from the start
LETTERS = 6  # for a token, and more than any tokenizer of a language with letters needs
LIKELY = 200  # tokens over which the missing one is marginalised
WORSE, REPEATS, APART = 1.1, 0.05, 0.1  # what is too much: see `verdict`


@dataclass(frozen=True, eq=False)
class Compatibility(Record):
    """How a model behaves on parts of its context."""

    model: str
    data: str
    subsets: tuple[dict[str, Any], ...]  # size (None: all), perplexity, low, high, count; ratio to fewer tokens
    guess: float  # perplexity of word frequencies alone, in the same places
    repetition: tuple[dict[str, Any], ...] = ()  # position, alone, beside_another (None at the first): mean f(w | …)
    truth: tuple[dict[str, Any], ...] = ()  # token, true, masked, covered
    verdict: str = ""
    trusted: bool = True
    settings: dict[str, Any] | None = None

    def validate(self) -> None:
        for name in ("subsets", "repetition", "truth"):
            object.__setattr__(self, name, tuple(plain(list(getattr(self, name)))))
        object.__setattr__(self, "settings", plain(self.settings or {}))

    @property
    def full(self) -> float:
        """Perplexity with the whole context."""
        return float(self.subsets[-1]["perplexity"])


def check_compatibility(
    model: Model,
    texts: Sequence[Example],
    *,
    length: int = 64,
    targets: int = 3,
    truths: int = 12,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    data: str = "texts",
) -> Compatibility:
    """Measure a language model on texts: blocks of `length` tokens, `targets` places in each."""
    if not model.generates or "score" not in model.offers or "delete" not in model.removals:
        raise Unsupported(f"{model.name} does not write text from parts of a context: name a language model.")
    encodings = blocks(model, texts, length)
    subsets, guess = on_subsets(model, encodings, targets, sizes, seed)
    repetition: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    if encodings[0].segments[0] != "source":
        repetition = repeated(model, encodings, min(length, FURTHEST))
        truth = marginal(model, encodings[:truths])
    settings = {"length": length, "targets": targets, "blocks": len(encodings), "truths": len(truth), "seed": seed}
    words, trusted = verdict(model.name, subsets, guess, repetition, truth)
    return Compatibility(
        model.name, data, tuple(subsets), guess, tuple(repetition), tuple(truth), words, trusted, settings
    )


def texts_of(model: Model, data: str, split: str | None, limit: int, folder: Any, length: int) -> list[Example]:
    """Texts of a data set or file; for a language model short ones that follow each other are joined, as lines are."""
    read = open_dataset(data, split=split, data=folder, skip_broken=True)
    if model.task == "seq2seq":
        return list(read.examples[:limit])
    found: list[Example] = []
    held: list[str] = []
    for example in read.examples:
        held.append(example.text)
        if sum(map(len, held)) > LETTERS * length:
            found.append(Example("\n".join(held)))
            held = []
        if len(found) == limit:
            break
    if not found:
        raise InputError(f"{data} is shorter than {length} tokens: give more text, or a smaller --length.")
    return found


def blocks(model: Any, texts: Sequence[Example], length: int) -> list[Encoding]:
    """Texts of at least `length` tokens, cut there; or sources with their translations (the gold label) behind them."""
    found = []
    for example in texts:
        if model.task == "seq2seq":
            if example.label is None:
                raise InputError(
                    f"{model.name} translates: give texts with their translations, such as a parallel set."
                )
            found.append(
                model.resolve_targets(model.encode([Example(example.text)])[0], TargetSpec(target=str(example.label)))[
                    0
                ][0]
            )
            continue
        ids = model.encode([example], truncate=True)[0]
        if len(ids) >= length:
            begin = int(ids.start[ids.start >= 0].min())  # a text that is too long for the model is cut in front
            cut = ids.texts[0][begin : int(ids.end[length - 1])]
            found.append(model.encode([Example(cut)], truncate=True)[0])
    if not found:
        raise InputError(f"No text has {length} tokens: give longer texts, or a smaller --length.")
    return found


# -- random parts ----------------------------------------------------------------------------------------------------


def on_subsets(
    model: Any, encodings: Sequence[Encoding], targets: int, sizes: Sequence[int], seed: int
) -> tuple[list[dict[str, Any]], float]:
    """Perplexity by the number of kept tokens, the last row is the whole context; and that of frequencies alone."""
    losses: list[dict[int | None, float]] = []
    guesses = frequencies(model, encodings)
    guessed: list[float] = []
    for number, encoding in enumerate(encodings):
        progress.report(number, len(encodings), "blocks on random parts")
        for token, each in losses_of(model, encoding, targets, sizes, np.random.default_rng([seed, number])):
            guessed.append(guesses(token))
            losses.append(each)
    found: list[dict[str, Any]] = []
    every: tuple[int | None, ...] = (*sizes, None)
    for many in every:
        if any(many in each for each in losses):
            found.append({**perplexity(many, losses, seed), **against_fewer(many, found, losses, seed)})
    return found, float(np.exp(np.mean(guessed)))


def losses_of(
    model: Any, encoding: Encoding, targets: int, sizes: Sequence[int], draw: np.random.Generator
) -> list[tuple[int, dict[int | None, float]]]:
    """Place by place: the token that stands there, and −log f of it by the number of kept tokens (None: all)."""
    questions, told = [], []
    for target in chosen(model, encoding, targets, draw):
        free = np.flatnonzero(target.free(encoding))
        rows, named = [], []
        for size in sizes:
            if size - 1 <= len(free):  # the token before the target is one of them
                row = np.zeros(len(encoding), bool)
                row[draw.choice(free, size - 1, replace=False)] = True
                rows.append(row)
                named.append(size)
        rows.append(np.ones(len(encoding), bool))
        questions.append(Question(encoding, target, np.stack(rows)))
        told.append([*named, None])
    with progress.silence():
        answers = model.score(questions, removal="delete", memory=Memory(limit=0))
    return [
        (int(question.target.ids[0]), dict(zip(names, (-answer.value.sum(-1)).tolist(), strict=True)))
        for question, names, answer in zip(questions, told, answers, strict=True)
    ]


def frequencies(model: Any, encodings: Sequence[Encoding]) -> Callable[[int], float]:
    """−log of how often a token stands in the texts, without the place that is asked about.

    What is new there is as likely as a new token was so far (Witten & Bell 1991), each new one equally.
    """
    last = len(encodings[0].segments) - 1
    counts = Counter(np.concatenate([each.ids[(each.segment == last) & ~each.fixed] for each in encodings]).tolist())
    size = model.hf.get_input_embeddings().num_embeddings

    def loss(token: int) -> float:
        others, known = counts.total() - 1, len(counts) - (counts[token] == 1)
        share = counts[token] - 1 if counts[token] > 1 else known / max(1, size - known)
        return float(np.log((others + known) / share))

    return loss


def chosen(model: Any, encoding: Encoding, count: int, draw: np.random.Generator) -> list[Target]:
    """Random places in the second half of what is written, where much of the context can be missing."""
    first = model.first_position(encoding)
    half = first + (len(encoding) - first) // 2
    places = np.arange(half, len(encoding))
    picked = sorted(draw.choice(places, min(count, len(places)), replace=False).tolist())
    return [model.next_target(encoding, int(encoding.ids[place]), place) for place in picked]


def perplexity(size: int | None, losses: Sequence[dict[int | None, float]], seed: int) -> dict[str, Any]:
    values = np.array([each[size] for each in losses if size in each])
    found = mean_interval(values, seed=seed)
    low, middle, high = (float(np.exp(value)) for value in (found.low, found.estimate, found.high))
    return {"size": size, "perplexity": middle, "low": low, "high": high, "count": len(values)}


def against_fewer(
    size: int | None, smaller: Sequence[dict[str, Any]], losses: Sequence[dict[int | None, float]], seed: int
) -> dict[str, Any]:
    """By how much more context makes it worse, at worst: the ratio of perplexities in the same places."""
    worst: dict[str, Any] = {"fewer": None, "ratio": 1.0, "ratio_low": 1.0}
    for row in smaller:
        few = row["size"]
        more = np.array([each[size] - each[few] for each in losses if size in each and few in each])
        ratio = float(np.exp(more.mean())) if len(more) else 0.0  # sizes that share no place can't be compared
        if ratio > worst["ratio"]:
            worst = {"fewer": few, "ratio": ratio, "ratio_low": float(np.exp(mean_interval(more, seed=seed).low))}
    return worst


# -- repetition ------------------------------------------------------------------------------------------------------


def repeated(model: Any, encodings: Sequence[Encoding], furthest: int) -> list[dict[str, Any]]:
    """Mean f(w | w) over frequent words, by where w stands alone and with one other word at the first position."""
    words = frequent_words(model, [encoding.texts[-1] for encoding in encodings], WORDS)
    if len(words) < 2:  # a language without spaces, or a tokenizer of letters
        return []
    told = []
    for number, (word, other) in enumerate(zip(words, [*words[1:], words[0]], strict=True)):
        progress.report(number, len(words), "words repeated")
        told.append(repetition_of_word(model, word, other, furthest))
    alone = np.mean([each.alone for each in told], axis=0).tolist()
    beside = [None, *np.mean([each.beside for each in told], axis=0).tolist()]  # at the first position is the other one
    return [
        {"position": place, "alone": one, "beside_another": two}
        for place, (one, two) in enumerate(zip(alone, beside, strict=True), 1)
    ]


# -- the truth -------------------------------------------------------------------------------------------------------


def marginal(model: Any, encodings: Sequence[Encoding]) -> list[dict[str, Any]]:
    """What the model itself says with the second token marginalised out, and with it left out.

    Asked about are the likeliest fourth token by the first and the one that stands in the text.
    """
    found = []
    for number, encoding in enumerate(encodings):
        progress.report(number, len(encodings), "tokens marginalised")
        place = np.flatnonzero(~encoding.fixed)[:4]
        if len(place) < 4 or place[3] - place[0] != 3:
            continue
        true, covered = by_marginalising(model, encoding, place)
        keep = np.zeros((1, len(encoding)), bool)
        keep[0, place[0]] = True
        for kind, token in (("likeliest", int(true.argmax())), ("actual", int(encoding.ids[place[3]]))):
            target = Target("token", (token,), (int(place[3]),), model.codec.name(token), "prob")
            with progress.silence():
                masked = float(model.score([Question(encoding, target, keep)], removal="delete")[0].value[0, 0])
            told = {"kind": kind, "token": model.codec.name(token), "true": float(true[token]), "masked": masked}
            found.append({**told, "covered": covered})
    return found


@torch.inference_mode()
def by_marginalising(model: Any, encoding: Encoding, place: np.ndarray) -> tuple[torch.Tensor, float]:
    """[v] p(y_4 | y_1, y_3), and the share of f(y_2 | y_1) over which it was summed."""
    ids = torch.from_numpy(encoding.ids[: place[2] + 1].copy()).to(model.device)
    start = ids[: place[1]]
    ask = lambda rows: precise(model.hf(input_ids=rows, attention_mask=torch.ones_like(rows)).logits)  # noqa: E731
    first = ask(start[None])[0, -1].softmax(-1)
    mass, tokens = first.topk(min(LIKELY, len(first)))
    rows = ids.repeat(len(tokens), 1)
    rows[:, place[1]] = tokens
    weights, mixed = torch.zeros_like(mass), torch.zeros_like(first)
    for begin in range(0, len(rows), 50):
        part = slice(begin, begin + 50)
        logits = ask(rows[part])
        weights[part] = mass[part] * logits[:, place[1]].softmax(-1)[:, int(ids[place[2]])]
        mixed += weights[part] @ logits[:, place[2]].softmax(-1)
    return mixed / weights.sum(), float(mass.sum())


# -- in a sentence ---------------------------------------------------------------------------------------------------


def verdict(
    name: str,
    subsets: Sequence[dict[str, Any]],
    guess: float,
    repetition: Sequence[dict[str, Any]],
    truth: Sequence[dict[str, Any]],
) -> tuple[str, bool]:
    """Whether rationales can be taken at face value: no part is worse than none, further tokens help, words are not
    repeated, and leaving out is nearly marginalising out."""
    faults = []
    poor = max(subsets, key=lambda row: row["low"])
    if poor["low"] > guess:
        faults.append(
            f"with {count(poor['size'])} its perplexity is {poor['perplexity']:,.0f}, "
            f"and {guess:,.0f} by the frequencies of tokens alone"
        )
    worst = max(subsets, key=lambda row: row["ratio"] if row["ratio_low"] > 1 else 0.0)
    if worst["ratio"] > WORSE and worst["ratio_low"] > 1:
        faults.append(
            f"{count(worst['size'])} make its guesses worse than {count(worst['fewer'])} "
            f"(perplexity × {worst['ratio']:.2f} in the same places)"
        )
    if repetition:
        share = max(max(row["alone"], row["beside_another"] or 0.0) for row in repetition)
        if share > REPEATS:
            faults.append(f"it repeats a word that stands alone with a probability of up to {share:.2f}")
    if truth:
        apart = float(np.mean([abs(row["true"] - row["masked"]) for row in truth if row["kind"] == "likeliest"]))
        if apart > APART:
            faults.append(f"without a token it is {apart:.2f} away from what it says with that token marginalised out")
    if not faults:
        return f"Rationales of {name} can be taken at face value: it behaves on parts of a context.", True
    told = faults[0] if len(faults) == 1 else ", ".join(faults[:-1]) + ", and " + faults[-1]
    return (
        f"Rationales of {name} can't be taken at face value: {told}. "
        f"`raison train compatibility -m {name}` teaches it to read parts of a context.",
        False,
    )


def count(size: int | None) -> str:
    if size is None:
        return "all tokens"
    return "the last one alone" if size == 1 else f"{size} random tokens"
