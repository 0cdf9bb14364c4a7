"""A word that stands alone at a position, and whether it is repeated there (P0 Figure 4).

The paper has a curve over positions for the word "the"; here the frequent words of a text, so that there is an interval
and a test, with the curve of "the" among them. Positions must be learned (or absolute in another way): with rotary ones
nothing depends on where a lone word stands. What is measured at large, on parts of any size, is `raison compatibility`.
Vafa et al. 2021, section 4.2 and Figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raison.core import progress
from raison.core.errors import InputError
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.core.spec import whole
from raison.models.tasks.generation import Writer
from raison.studies.context_blocks import encode_blocks, read_texts
from raison.studies.random_parts import measure_random_parts
from raison.studies.repetition import Repeated, frequent_words, of_word
from raison.studies.reproduce.experiment import Number, Trial, experiment, found

__all__ = ["repetition"]

PLACES = ("first", "later", "beside")  # specs of the suite: where the word stands
THE = " the"
SUBSET = 10  # tokens of the random parts on which perplexity is told
COLUMNS = (
    Column("repeats", "mean f(w | w)", False),
    Column("top", "share of the positions at which w is the first choice", False),
)


@experiment("repetition")
def repetition(trial: Trial) -> Evaluation:
    """How likely a word is repeated that stands alone, by its position, over the frequent words of a text."""
    run, model = trial.run, trial.model
    if not isinstance(model, Writer):
        raise InputError(f"{model.name} does not write: pass a language model or a translator.")
    size = int(run.settings.get("positions", 64))
    whole("positions", size, 3)
    size = min(size, model.max_tokens or size)
    if strange := set(trial.methods.values()) - set(PLACES):
        raise InputError(f"A word stands {', '.join(PLACES)}, not {', '.join(sorted(strange))}.")
    texts = read_texts(
        model,
        run.data,
        split=run.split,
        limit=run.settings.get("blocks", 40),
        folder=trial.data_dir,
        length=size,
    )
    words = frequent_words(model, [example.text for example in texts], trial.count)
    if len(words) < 2:
        raise InputError(f"{run.data} holds no words that {model.name} reads as one token: give other texts.")
    told: list[Repeated] = []
    for number, (word, other) in enumerate(zip(words, [*words[1:], words[0]], strict=True)):
        progress.report(number, len(words), "words repeated")
        told.append(of_word(model, word, other, size))
    rows = {title: [numbers(each, place) for each in told] for title, place in trial.methods.items()}
    made = found(trial, COLUMNS, rows, data=run.data, about=about(trial, model, texts, words, size))
    curves = {
        "repetition_curve": averaged(words, [each.alone for each in told]),  # by the position of the word
        "distance_curve": averaged(words, [each.beside for each in told]),  # by its distance to the other one
    }
    seen = tuple(EvaluatedText(word.strip(), word) for word in words)
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


def about(trial: Trial, model: Writer, texts: Sequence[Example], words: Sequence[str], size: int) -> list[str]:
    """Sentences for the page: which words, and how well the model reads whole contexts and parts of them."""
    blocks = encode_blocks(model, texts, size)
    parts = measure_random_parts(model, blocks, targets=3, sizes=(SUBSET,), seed=trial.seed)
    told = [
        f"{row.perplexity:.1f} ({row.low:.1f} … {row.high:.1f}) given "
        + ("the whole context" if row.size is None else f"{row.size} random tokens of it")
        for row in reversed(parts.subsets)
    ]
    return [
        f"The {len(words)} most frequent words of {trial.run.data} that are one token, at the positions 1 to "
        f"{size - 1}.",
        f"Perplexity {' and '.join(told)}, in {parts.subsets[-1].count} places of that text.",
    ]
