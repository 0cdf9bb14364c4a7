"""Labelled texts of an audit with the model's answers, attention, gradients and word states, each asked once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch

from raison.api import explain
from raison.attention_models.adapter import AttentionModel, to_numpy
from raison.core.records import Encoding, Example
from raison.models.protocol import InspectableModel
from raison.studies.audit.state_importance import (
    importance_as_shares,
    real_tokens_with_states,
    states_and_embeddings,
)
from raison.training.f1 import f1_of_classes

__all__ = ["AttentiveTexts", "AuditedTexts", "WordStates", "audited_texts"]

NO_NUMBERS = np.zeros(0)


class WordStates:
    """The real tokens of several texts: word numbers [n], embeddings [n d] and hidden states [n d']."""

    def __init__(self) -> None:
        self.ids_by_text: list[np.ndarray] = []
        self.embeddings_by_text: list[np.ndarray] = []
        self.states_by_text: list[np.ndarray] = []

    def add_text(self, ids: np.ndarray, embeddings: np.ndarray, states: np.ndarray) -> None:
        """Add the real tokens of one text."""
        self.ids_by_text.append(ids)
        self.embeddings_by_text.append(embeddings)
        self.states_by_text.append(states)

    @property
    def ids(self) -> np.ndarray:
        return np.concatenate(self.ids_by_text).astype(int)

    @property
    def embeddings(self) -> np.ndarray:
        return np.concatenate(self.embeddings_by_text)

    @property
    def states(self) -> np.ndarray:
        return np.concatenate(self.states_by_text)


class AuditedTexts:
    """Texts with what a classifier says about them; its attention is that of the last layer, from the row it reads."""

    def __init__(
        self,
        model: InspectableModel,
        examples: Sequence[Example],
        encodings: Sequence[Encoding],
        seed: int,
    ):
        self.model = model
        self.examples = examples
        self.encodings = encodings
        self.seed = seed
        self.real = [real_tokens_with_states(encoding, model) for encoding in encodings]
        gold = [model.labels.index(example.label) for example in examples]
        self.gold = np.array(gold)
        predicted = []
        probabilities = []
        for prediction in model.predict(encodings):
            predicted.append(prediction.target.ids[0])
            probabilities.append(prediction.value)
        self.predicted = np.array(predicted)
        self.probabilities = probabilities

    def __len__(self) -> int:
        return len(self.encodings)

    def fingerprint(self) -> str:
        """The model and the texts, known by what it says of them."""
        content = hashlib.sha256()
        for encoding, predicted, probability in zip(
            self.encodings, self.predicted, self.probabilities, strict=True
        ):
            ids = np.asarray(encoding.ids, np.int64)
            content.update(ids.tobytes())
            answer = f"{predicted} {probability:.5f}"
            content.update(answer.encode())
        content.update(self.gold.tobytes())
        return content.hexdigest()[:16]

    @property
    def share_of_commonest_label(self) -> float:
        counts = np.bincount(self.gold)
        return float(counts.max() / len(self.gold))

    def accuracy(self, predicted: np.ndarray) -> float:
        return float((predicted == self.gold).mean())

    def f1(self, predicted: np.ndarray) -> float:
        """NaN where it is that of a class that no text has."""
        classes = len(self.model.labels)
        if classes == 2 and 1 not in self.gold:
            return float("nan")
        return f1_of_classes(predicted, self.gold, classes)

    def importance(self, method: str) -> list[np.ndarray]:
        """[n] sizes of a method's scores for the probability of the predicted class, token by token, as shares."""
        plain = []
        for example in self.examples:
            plain.append(Example(example.text, example.pair))
        explanations = explain(
            self.model, plain, method=method, units="token", output="prob", truncate=True
        )
        rows = []
        for explanation, real in zip(explanations, self.real, strict=True):
            units = explanation.units.of[real]
            # −1: a token without a unit, as the last one of a decoder, from which it reads; the 0 at the end is its
            scores = np.append(np.asarray(explanation.scores), 0.0)
            rows.append(importance_as_shares(scores[units]))
        return rows

    @cached_property
    def attention(self) -> list[np.ndarray]:
        """[t] the attention of each text's real tokens."""
        return self.importance("attention_last")

    @cached_property
    def gradients(self) -> list[np.ndarray]:
        """[t] the importance of words by gradients."""
        return self.importance("gradient_norm")

    @cached_property
    def removals(self) -> list[np.ndarray]:
        """[t] the importance of words by leaving them out."""
        return self.importance("leave_one_out")

    def word_states(self) -> WordStates:
        """Embeddings and hidden states of all real tokens."""
        words = WordStates()
        for encoding, real in zip(self.encodings, self.real, strict=True):
            states, embeddings = states_and_embeddings(self.model, encoding)
            real_embeddings = to_numpy(embeddings[0])[real]
            real_states = to_numpy(states[0])[real]
            words.add_text(encoding.ids[real], real_embeddings, real_states)
        return words


class AttentiveTexts(AuditedTexts):
    """Texts of a classifier with one attention over its words."""

    model: AttentionModel

    @cached_property
    def attention(self) -> list[np.ndarray]:
        weights = self.model.own(self.encodings)
        rows = []
        for row, real in zip(weights, self.real, strict=True):
            rows.append(row[real])
        return rows

    @cached_property
    def word_logits(self) -> list[np.ndarray]:
        """[t c] what each real word of a text says for itself: weighted by attention they are the logits."""
        rows = [NO_NUMBERS] * len(self)
        for batch in self.model.passes(self.encodings):
            logits = to_numpy(self.model.view.decoder(batch.output.read))
            for row, owner in enumerate(batch.owners):
                rows[owner] = logits[row][self.real[owner]]
        return rows

    def word_probabilities(self, number: int) -> tuple[float, ...]:
        """The probability of the predicted class from each word of one text alone."""
        (batch,) = self.model.passes([self.encodings[number]])
        logits: torch.Tensor = self.model.view.decoder(batch.output.read)
        probabilities = logits.softmax(-1)
        predicted = self.predicted[number]
        of_class = to_numpy(probabilities[0, :, predicted])
        of_words = of_class[self.real[number]]
        rounded = [round(float(value), 4) for value in of_words]
        return tuple(rounded)

    def word_states(self) -> WordStates:
        words = WordStates()
        for batch in self.model.passes(self.encodings):
            embeddings = to_numpy(batch.output.embeddings)
            states = to_numpy(batch.output.read)
            for row, owner in enumerate(batch.owners):
                real = self.real[owner]
                ids = self.encodings[owner].ids[real]
                words.add_text(ids, embeddings[row][real], states[row][real])
        return words


def audited_texts(
    model: InspectableModel, examples: Sequence[Example], encodings: Sequence[Encoding], seed: int
) -> AuditedTexts:
    """The texts, as they can be asked about with this kind of model."""
    kind = AttentiveTexts if isinstance(model, AttentionModel) else AuditedTexts
    return kind(model, examples, encodings, seed)
