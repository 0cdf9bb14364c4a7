"""What compatibility training costs where nothing is missing: held-out texts with their whole context (P0, Table 7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raison.core.errors import InputError, MissingExtra
from raison.core.evaluation import Column, EvaluatedText, Evaluation
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.metrics.base import Share
from raison.models.protocol import Question, TargetSpec
from raison.studies.context_blocks import encode_blocks, read_texts
from raison.studies.reproduce.experiment import Number, Trial, experiment, found
from raison.studies.reproduce.experiments.majority import LANGUAGE, loss, sentences

__all__ = ["bleu", "heldout"]

LENGTH = 64  # tokens of a block of text
COLUMNS = (Column("loss", "mean −log f of a token, given all before it", False, True),)
Read = tuple[str, Share, str | None]  # the text, its loss, and what the model writes itself, where it translates


@experiment("heldout")
def heldout(trial: Trial) -> Evaluation:
    """Mean −log f of the tokens of held-out texts, and the BLEU of an encoder-decoder's own translations.

    Translations are written greedily; BLEU is sacrebleu's, with the interval of its bootstrap.
    """
    rows: list[dict[str, Number]] = []
    seen, said, asked = [], [], []
    for number, (text, surprise, own) in enumerate(read(trial)):
        trial.step(f"text {number + 1} of {trial.count}")
        rows.append({"loss": surprise})
        seen.append(EvaluatedText(str(number), text))
        if own is not None:  # an empty translation is a bad one
            said.append(own)
            asked.append(text)
    (title,) = trial.methods
    evaluation = found(trial, COLUMNS, {title: rows}, data=trial.run.data)
    notes = []
    mean = evaluation.cell(title, "loss").value
    if mean is not None:
        notes.append(f"Perplexity {np.exp(mean):.4g} on {len(rows)} texts.")
    if said:
        score, low, high = bleu(said, asked)
        notes.append(f"BLEU {score:.1f} (95 % interval {low:.1f} to {high:.1f}).")
    return replace(evaluation, texts=tuple(seen), notes=tuple(notes))


def read(trial: Trial) -> Iterator[Read]:
    """Text by text, as the task of the model has it."""
    model: Any = trial.model
    run = trial.run
    if run.data == LANGUAGE:
        for bits, _ in sentences(trial.count, trial.seed):
            losses = loss(trial, bits)
            yield bits, Share(sum(losses), len(losses)), None
    elif model.task == "seq2seq":
        for example in open_dataset(run.data, split=run.split, limit=trial.count, data=trial.data_dir).examples:
            (source,) = model.encode([Example(example.text)])
            encoding, target = model.resolve_targets(source, TargetSpec(target=str(example.label)))[0]
            own = model.codec.own.decode(model.write(source), skip_special_tokens=True)
            yield str(example.label), surprise_of(model, encoding, [target]), own
    elif model.task == "causal":
        length = int(run.settings.get("length", LENGTH))
        texts = read_texts(model, run.data, split=run.split, limit=trial.count, folder=trial.data_dir, length=length)
        for encoding in encode_blocks(model, texts, length):
            first = model.first_position(encoding)
            targets = [
                model.next_target(encoding, int(encoding.ids[place]), place) for place in range(first, len(encoding))
            ]
            yield encoding.texts[-1], surprise_of(model, encoding, targets), None
    else:
        raise InputError(f"{model.name} does not write: pass a language model or a translator.")


def surprise_of(model: Any, encoding: Any, targets: Sequence[Any]) -> Share:
    """−log f of all tokens of the targets, and how many they are."""
    everything = np.ones((1, len(encoding)), bool)
    answers = model.score([Question(encoding, target, everything) for target in targets], removal="delete")
    total = -sum(float(answer.value[0].sum()) for answer in answers)
    return Share(total, sum(len(target.ids) for target in targets))


def bleu(said: Sequence[str], asked: Sequence[str]) -> tuple[float, float, float]:
    """Corpus BLEU, and its interval by resampled corpora (sacrebleu's own, with its own seed)."""
    try:
        from sacrebleu.metrics import BLEU
    except ImportError:
        raise MissingExtra("sacrebleu", "bleu", "The BLEU of a translator") from None
    found = BLEU().corpus_score(list(said), [list(asked)], n_bootstrap=1000)
    return float(found.score), float(found._mean - found._ci), float(found._mean + found._ci)
