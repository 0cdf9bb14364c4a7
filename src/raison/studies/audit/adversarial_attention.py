"""The largest divergence of another attention of one text with the same answer: exact for two classes, else a search.

Jain & Wallace (2019) ask for

    max JSD(α, α')  over all attentions α' with  TVD(ŷ, ŷ') ≤ 0.05

and search for it by gradients from five random starts. Logits are Σ α_t (W r_t + b), so no pass of the model is needed,
and for two classes no search either: the answer depends on one number that is linear in α', so what is allowed is a
slice of the simplex; JSD is convex in α', so it is largest in a corner of that slice; and a corner has all attention on
one word, or on two words with the answer at the edge of what is allowed. n words have at most n² corners.

With more classes what is allowed has no such shape: the pairs of words are looked at on a grid, the search is theirs,

    min Σ_k [ −JSD(α, α_k) + 500 · relu(TVD(ŷ, ŷ_k) − 0.01) ] − mean over pairs of JSD(α_k, α_l)

and what is told is the largest that was found.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from raison.attention_models.adapter import AttentionModel, to_numpy
from raison.core import progress
from raison.core.records import Encoding
from raison.studies.audit.audit_numbers import Spread
from raison.studies.audit.audited_texts import AttentiveTexts
from raison.studies.audit.divergence import entropy, jsd, tvd
from raison.studies.audit.word_pairs import (
    CLOSE,
    divergences_of_one_word,
    farthest_corner,
    farthest_on_grid,
)
from raison.training.seeds import seeded_generator

__all__ = [
    "FAR",
    "TextLogits",
    "largest_divergences",
    "search_divergences",
    "spread_of_largest_divergences",
]

FAR = 0.4  # JSD from which an attention is very different
STARTS = 5  # attentions that are searched for at once
STEPS = 500
POOL = 200  # texts that are searched at once
RATE = 0.01
PENALTY, SLACK = 500.0, 0.01


@dataclass(frozen=True)
class TextLogits:
    """The words of one text: their attention, and what each says for itself."""

    attention: np.ndarray  # [t]
    logits: np.ndarray  # [t c]

    def __len__(self) -> int:
        return len(self.attention)


def spread_of_largest_divergences(texts: AttentiveTexts) -> Spread:
    """The largest JSD of an attention that leaves the answer as it is; of texts whose attention can move far at
    all, which that of one word can't, nor flat attention over three."""
    same_answer, any_answer = largest_divergences(
        texts.model, texts.encodings, texts.real, seed=texts.seed
    )
    can_move = np.where(any_answer > FAR, same_answer, np.nan)
    return Spread.of(can_move.tolist(), texts.seed)


def largest_divergences(
    model: AttentionModel,
    encodings: Sequence[Encoding],
    real: Sequence[np.ndarray],
    *,
    seed: int = 0,
    steps: int = STEPS,
) -> tuple[np.ndarray, np.ndarray]:
    """[n] of each text the largest JSD of an attention that leaves its answer as it is, and [n] of any attention;
    `real` are the places of the words, which alone are attended to. 0 where there are none."""
    texts = attention_logits_of_texts(model, encodings, real)
    two_classes = len(model.labels) == 2
    with_words = [number for number, text in enumerate(texts) if len(text)]
    same_answer = np.zeros(len(texts))
    any_answer = np.zeros(len(texts))
    for start in range(0, len(with_words), POOL):
        end = start + POOL
        part = with_words[start:end]
        for number in part:
            text = texts[number]
            # JSD is convex: nothing is farther than one word
            of_one_word = divergences_of_one_word(text.attention)
            any_answer[number] = of_one_word.max()
            if two_classes:
                same_answer[number] = farthest_of_two_classes(text)
            else:
                same_answer[number] = farthest_on_grid(text.attention, text.logits)

        if not two_classes:
            texts_of_part = []
            starts = []
            for number in part:
                text = texts[number]
                texts_of_part.append(text)
                start_of_text = first_attention_logits(encodings[number], len(text), seed)
                starts.append(start_of_text)
            by_search = search_divergences(texts_of_part, starts, steps)
            on_grid = same_answer[part]
            same_answer[part] = np.maximum(by_search, on_grid)
        done = start + len(part)
        progress.report(done, len(encodings), "adversarial attention")
    return same_answer, any_answer


def attention_logits_of_texts(
    model: AttentionModel, encodings: Sequence[Encoding], real: Sequence[np.ndarray]
) -> list[TextLogits]:
    """The real words of each text."""
    no_logits = np.zeros((0, 2))
    without_words = TextLogits(np.zeros(0), no_logits)
    texts = [without_words] * len(encodings)
    for batch in model.passes(encodings):
        with torch.no_grad():
            logits = to_numpy(model.view.decoder(batch.output.read))  # [b t c]
        weights = to_numpy(batch.output.weights)
        for row, owner in enumerate(batch.owners):
            words = real[owner]
            attention = weights[row][words]
            logits_of_words = logits[row][words]
            texts[owner] = TextLogits(attention, logits_of_words)
    return texts


def farthest_of_two_classes(text: TextLogits) -> float:
    """The largest JSD for two classes, exactly."""
    for_first = text.logits[:, 0]
    lean = text.logits[:, 1] - for_first
    return farthest_corner(text.attention, lean)


def first_attention_logits(encoding: Encoding, count: int, seed: int) -> torch.Tensor:
    """[k t] logits to start from; of the text alone, whatever others stand beside it."""
    ids = np.asarray(encoding.ids, np.int64)
    checksum = zlib.crc32(ids.tobytes())
    random = seeded_generator(seed, checksum)
    normal = torch.randn(STARTS, count, generator=random, dtype=torch.float64)
    return 3 * normal


def search_divergences(
    texts: Sequence[TextLogits], starts: Sequence[torch.Tensor], steps: int
) -> np.ndarray:
    """[b] by Jain & Wallace's search, all texts at once: a step for one costs as much as one for fifty."""
    with torch.inference_mode(False), torch.enable_grad():
        search = AttentionSearch(texts, starts)
        search.run(steps)
    with torch.no_grad():
        _, divergence, distance = search.measure()
        nothing = torch.zeros_like(divergence)
        is_allowed = distance <= CLOSE
        allowed = torch.where(is_allowed, divergence, nothing)
        largest = allowed.max(-1).values
    return np.asarray(largest.numpy())


class AttentionSearch:
    """Several attentions of each text, moved by gradients away from its own and from each other."""

    def __init__(self, texts: Sequence[TextLogits], starts: Sequence[torch.Tensor]):
        lengths, weights, logits = [], [], []
        for text in texts:
            lengths.append(len(text))
            weights.append(torch.from_numpy(text.attention))
            logits.append(torch.from_numpy(text.logits))
        attention = pad_sequence(weights, batch_first=True)
        self.own = attention[:, None]  # [b 1 t]
        self.logits = pad_sequence(logits, batch_first=True)  # [b t c]
        own_logits = self.own @ self.logits
        self.answers = own_logits.softmax(-1)  # [b 1 c]

        places = torch.arange(attention.shape[-1])
        length_of_text = torch.tensor(lengths)[:, None]
        self.padding = places >= length_of_text  # [b t]
        starts_by_token = [start.T for start in starts]
        padded_starts = pad_sequence(starts_by_token, batch_first=True)  # [b t k]
        free = padded_starts.transpose(1, 2)
        self.free = free.clone().requires_grad_()  # [b k t] logits of the attentions

        self.first_of_pair: list[int] = []
        self.second_of_pair: list[int] = []
        for first, second in combinations(range(STARTS), 2):
            self.first_of_pair.append(first)
            self.second_of_pair.append(second)

    def measure(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The attentions [b k t], how far each is from the text's own [b k], and how far its answer moves [b k]."""
        padding = self.padding[:, None]
        logits = self.free.masked_fill(padding, -torch.inf)
        weights = logits.softmax(-1)
        logits_of_answers = weights @ self.logits
        answers = logits_of_answers.softmax(-1)
        divergence = jsd(weights, self.own)
        distance = tvd(answers, self.answers)
        return weights, divergence, distance

    def run(self, steps: int) -> None:
        optimizer = torch.optim.Adam([self.free], lr=RATE, amsgrad=True)
        for _ in range(steps):
            weights, divergence, distance = self.measure()
            first = weights[:, self.first_of_pair]
            second = weights[:, self.second_of_pair]
            mean_of_pair = (first + second) / 2
            middle = entropy(mean_of_pair).mean(-1)
            # the mean JSD over pairs; each attention is in as many pairs
            ends = entropy(weights).mean(-1)
            between = (middle - ends).sum()
            excess = (distance - SLACK).relu()
            penalty = PENALTY * excess
            from_own = (penalty - divergence).sum()
            loss = from_own - between

            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
