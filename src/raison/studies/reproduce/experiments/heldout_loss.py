"""Experiment: loss and BLEU on held-out texts, where nothing is missing, after compatibility training (P0, Table 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raison.core.errors import InputError, MissingExtra
from raison.core.evaluation import EvaluatedText, Evaluation
from raison.core.records import Encoding, Example, Target
from raison.datasets.open import open_dataset
from raison.metrics.base import Share
from raison.models.protocol import Model, Question, TargetSpec
from raison.studies.context_blocks import encode_blocks, read_block_texts
from raison.studies.reproduce.experiment import (
    ResultRow,
    Trial,
    evaluation_of_rows,
    experiment,
    experiment_column,
)
from raison.studies.reproduce.experiments.majority_language import (
    LANGUAGE,
    majority_sentences,
    token_losses_in_majority_language,
)

__all__ = ["Bleu", "corpus_bleu", "heldout_loss"]

LENGTH = 64  # tokens of a block of text


@dataclass(frozen=True)
class HeldoutRow(ResultRow):
    """The number of one text."""

    loss: Share = experiment_column(
        "mean −log f of a token, given all before it", higher=False, pooled=True
    )


@dataclass(frozen=True)
class HeldoutText:
    """A text, −log f of its tokens, and what the model writes itself, where it translates."""

    text: str
    loss: Share
    translation: str | None = None


@dataclass(frozen=True)
class Bleu:
    """Corpus BLEU with the interval of a bootstrap."""

    score: float
    low: float
    high: float


@experiment("heldout")
def heldout_loss(trial: Trial) -> Evaluation:
    """Mean −log f of the tokens of held-out texts, and the BLEU of an encoder-decoder's own translations.

    Translations are written greedily; BLEU is sacrebleu's, with the interval of its bootstrap.
    """
    texts = []
    for number, text in enumerate(heldout_texts(trial)):
        trial.step(f"text {number + 1} of {trial.count}")
        texts.append(text)

    (title,) = trial.methods
    rows = [HeldoutRow(loss=text.loss) for text in texts]
    evaluation = evaluation_of_rows(trial, HeldoutRow.columns(), {title: rows}, data=trial.run.data)
    notes = []
    mean = evaluation.cell(title, "loss").value
    if mean is not None:
        notes.append(f"Perplexity {np.exp(mean):.4g} on {len(rows)} texts.")
    translations, gold = [], []
    for text in texts:
        if text.translation is not None:  # an empty translation is a bad one
            translations.append(text.translation)
            gold.append(text.text)
    if translations:
        found = corpus_bleu(translations, gold)
        notes.append(f"BLEU {found.score:.1f} (95 % interval {found.low:.1f} to {found.high:.1f}).")
    evaluated = []
    for number, text in enumerate(texts):
        evaluated.append(EvaluatedText(str(number), text.text))
    return replace(evaluation, texts=tuple(evaluated), notes=tuple(notes))


def heldout_texts(trial: Trial) -> Iterator[HeldoutText]:
    """Text by text, as the task of the model has it."""
    if trial.run.data == LANGUAGE:
        for sentence in majority_sentences(trial.count, trial.seed):
            losses = token_losses_in_majority_language(trial, sentence.text)
            loss = Share(sum(losses), len(losses))
            yield HeldoutText(sentence.text, loss)
    elif trial.model.task == "seq2seq":
        yield from heldout_translations(trial)
    elif trial.model.task == "causal":
        yield from heldout_blocks_of_text(trial)
    else:
        raise InputError(
            f"{trial.model.name} does not write: pass a language model or a translator."
        )


def heldout_translations(trial: Trial) -> Iterator[HeldoutText]:
    """The gold translations of a data set, and the model's own."""
    model: Any = trial.model
    run = trial.run
    loaded = open_dataset(run.data, split=run.split, limit=trial.count, data=trial.data_dir)
    for example in loaded.examples:
        gold = str(example.label)
        (source,) = model.encode([Example(example.text)])
        ((encoding, target),) = model.resolve_targets(source, TargetSpec(target=gold))
        own = model.codec.own.decode(model.write(source), skip_special_tokens=True)
        yield HeldoutText(gold, loss_of_targets(model, encoding, [target]), own)


def heldout_blocks_of_text(trial: Trial) -> Iterator[HeldoutText]:
    """Blocks of a language model's text, of one length."""
    model: Any = trial.model
    run = trial.run
    length = int(run.settings.get("length", LENGTH))
    texts = read_block_texts(
        model, run.data, split=run.split, limit=trial.count, folder=trial.data_dir, length=length
    )
    for encoding in encode_blocks(model, texts, length):
        places = range(model.first_position(encoding), len(encoding))
        targets = []
        for place in places:
            token = int(encoding.ids[place])
            targets.append(model.next_target(encoding, token, place))
        loss = loss_of_targets(model, encoding, targets)
        yield HeldoutText(encoding.texts[-1], loss)


def loss_of_targets(model: Model, encoding: Encoding, targets: Sequence[Target]) -> Share:
    """−log f of all tokens of the targets, and how many they are."""
    everything = np.ones((1, len(encoding)), bool)
    questions = []
    for target in targets:
        questions.append(Question(encoding, target, everything))
    answers = model.score(questions, removal="delete")
    total = -sum(float(answer.value[0].sum()) for answer in answers)
    count = sum(len(target.ids) for target in targets)
    return Share(total, count)


def corpus_bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """Corpus BLEU, and its interval by resampled corpora (sacrebleu's own, with its own seed)."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise MissingExtra("sacrebleu", "bleu", "The BLEU of a translator") from None
    found: Any = BLEU().corpus_score(list(translations), [list(references)], n_bootstrap=1000)
    return Bleu(
        score=float(found.score),
        low=float(found._mean - found._ci),
        high=float(found._mean + found._ci),
    )
