"""A word that stands alone at position t: is the same word predicted behind it? (P0 Figure 4)

    f(y_{t+1} = w | y_t = w)          only w is left, at its position t
    f(y_{t+1} = w | y_1, y_t = w)     one other word is left as well, at the first position

A language model has learned what follows the first token of a text from that token alone, but has never seen a token
alone at a later position, unless words were dropped in training. The paper has a curve over t for the word "the"; here
the frequent words of a text, so that there is an interval and a test, with the curve of "the" among them. Positions
must be learned (or absolute in another way): with rotary ones the first line does not depend on t. What is measured at
large, on parts of any size, is `raison compatibility`. Vafa et al. 2021, section 4.2 and Figure 4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison import progress
from raison.errors import InputError
from raison.evaluation import Column, Evaluation, Seen
from raison.models.base import Model, Question
from raison.models.memory import Memory
from raison.spec import whole
from raison.studies.compatibility import blocks, on_subsets, texts_of
from raison.studies.experiment import Number, Trial, experiment, found
from raison.types import Example

__all__ = ["Repeated", "frequent_words", "of_word", "repetition"]

PLACES = ("first", "later", "beside")  # specs of the suite: where the word stands
THE = " the"
SUBSET = 10  # tokens of the random parts on which perplexity is told
COLUMNS = (
    Column("repeats", "mean f(w | w)", False),
    Column("top", "share of the positions at which w is the first choice", False),
)


@dataclass(frozen=True)
class Repeated:
    """What a model says behind one word: [t] for each position of it."""

    alone: np.ndarray  # f(w | w), positions from the first on
    alone_top: np.ndarray  # whether w is the first choice
    beside: np.ndarray  # f(w | another word first, w), positions from the second on
    beside_top: np.ndarray


@experiment("repetition")
def repetition(trial: Trial) -> Evaluation:
    """How likely a word is repeated that stands alone, by its position, over the frequent words of a text."""
    run, model = trial.run, trial.model
    size = int(run.settings.get("positions", 64))
    whole("positions", size, 3)
    size = min(size, getattr(model, "limit", None) or size)
    if strange := set(trial.methods.values()) - set(PLACES):
        raise InputError(f"A word stands {', '.join(PLACES)}, not {', '.join(sorted(strange))}.")
    texts = texts_of(model, run.data, run.split, run.settings.get("blocks", 40), trial.data_dir, size)
    words = frequent_words(model, texts, trial.count)
    told: list[Repeated] = []
    for number, (word, other) in enumerate(zip(words, [*words[1:], words[0]], strict=True)):
        progress.report(number, len(words), "words repeated")
        told.append(of_word(model, word, other, size))
    rows = {title: [numbers(each, place) for each in told] for title, place in trial.methods.items()}
    made = found(trial, COLUMNS, rows, data=run.data, about=about(trial, texts, words, size))
    curves = {
        "repetition_curve": averaged(words, [each.alone for each in told]),  # by the position of the word
        "distance_curve": averaged(words, [each.beside for each in told]),  # by its distance to the other one
    }
    seen = tuple(Seen(word.strip(), word) for word in words)
    return replace(made, texts=seen, curves=curves)


def averaged(words: Sequence[str], values: Sequence[np.ndarray]) -> dict[str, list[float]]:
    """The curve of "the", if it is there, and the mean of all."""
    mean = {f"mean of {len(words)} words": np.mean(values, axis=0).tolist()}
    return {"the": values[words.index(THE)].tolist(), **mean} if THE in words else mean


def numbers(repeated: Repeated, place: str) -> dict[str, Number]:
    if place == "beside":
        return {"repeats": float(repeated.beside.mean()), "top": float(repeated.beside_top.mean())}
    part = slice(0, 1) if place == "first" else slice(1, None)
    return {"repeats": float(repeated.alone[part].mean()), "top": float(repeated.alone_top[part].mean())}


def frequent_words(model: Any, texts: Sequence[Example], count: int) -> list[str]:
    """The most frequent words of the texts that are one token with the space before them, most frequent first."""
    counts = Counter(word for example in texts for word in re.findall(r"(?<!\S)[^\W\d_]+(?!\S)", example.text))
    words: list[str] = []
    for word, _ in counts.most_common():
        (encoding,) = model.encode([Example(f" {word} {word}")])
        ids = encoding.ids[~encoding.fixed]
        if len(ids) == 2 and ids[0] == ids[1]:
            words.append(f" {word}")
        if len(words) == count:
            break
    if len(words) < 2:
        raise InputError("The texts hold no words that can be repeated: give texts in a language with spaces.")
    return words


def of_word(model: Any, word: str, other: str, size: int) -> Repeated:
    """Every position of a word up to `size` − 1, alone and with `other` at the first position."""
    alone, alone_top = asked(model, word * size, 0)
    beside, beside_top = asked(model, other + word * (size - 1), 1)
    return Repeated(alone, alone_top, beside, beside_top)


def asked(model: Model, text: str, others: int) -> tuple[np.ndarray, np.ndarray]:
    """[t] probability of the word again, and whether it is the first choice, when only the `others` and it are there.

    The text is the word over and over behind the others; what stands around the word that is asked about is deleted.
    """
    (encoding,) = model.encode([Example(text)], truncate=True)
    place = np.flatnonzero(~encoding.fixed)
    word = int(encoding.ids[place[-1]])
    if len(place) < others + 2 or (encoding.ids[place[others:]] != word).any():
        raise InputError(f"{model.name} does not read {text.split()[-1]!r} as one token: choose other words.")
    keep = np.zeros((1, len(encoding)), bool)
    keep[0, place[:others]] = True  # the word itself stays: it is what the target is read from
    questions = [
        Question(encoding, replace(model.next_target(encoding, word, int(last) + 1), output="prob"), keep)  # type: ignore[attr-defined]
        for last in place[others:-1]
    ]
    with progress.silence():
        answers = model.score(questions, removal="delete", memory=Memory(limit=0))
    value = np.array([answer.value[0, 0] for answer in answers])
    return value, np.array([answer.rank[0, 0] == 0 for answer in answers], dtype=float)


def about(trial: Trial, texts: Sequence[Example], words: Sequence[str], size: int) -> list[str]:
    """Sentences for the page: which words, and how well the model reads whole contexts and parts of them."""
    parts, _ = on_subsets(trial.model, blocks(trial.model, texts, size), 3, (SUBSET,), trial.seed)
    told = [
        f"{row['perplexity']:.1f} ({row['low']:.1f} … {row['high']:.1f}) given "
        + ("the whole context" if row["size"] is None else f"{row['size']} random tokens of it")
        for row in reversed(parts)
    ]
    return [
        f"The {len(words)} most frequent words of {trial.run.data} that are one token, at the positions 1 to "
        f"{size - 1}.",
        f"Perplexity {' and '.join(told)}, in {parts[-1]['count']} places of that text.",
    ]
