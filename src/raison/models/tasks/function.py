"""Any Python function from texts to scores as a task: the words of a text, its outputs as targets, and the kept
text that it is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from raison.core import limits, progress
from raison.core.errors import InputError, ModelError, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.core.spec import index_in_spec
from raison.core.text_splitting import split_words
from raison.models.protocol import PREDICTED, OwnModel, Prediction, Question, Scored, TargetSpec
from raison.models.runner import meter
from raison.models.runner.score_cache import Memory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Function", "axis_of_words"]

BATCH = 256  # texts per call of the function
BEST = 5  # outputs that a prediction shows


class Function(OwnModel):
    """A black box `list[str] -> scores [n classes]` (or [n]); its tokens are words, absence is deletion."""

    def __init__(
        self,
        function: Callable[[list[str]], ArrayLike],
        name: str,
        labels: Sequence[str] | None = None,
    ):
        self.function = function
        self.name = name
        self.labels = tuple(labels or ())

    # -- the function -------------------------------------------------------------------------------

    def ask(self, texts: list[str]) -> np.ndarray:
        """[n v] scores; anything else that the function returns is refused with a sentence."""
        try:
            scores = np.asarray(self.function(texts), dtype=np.float64)
        except Exception as error:
            raise ModelError(
                f"The function {self.name} failed on a list of texts ({error})."
            ) from error

        if scores.ndim == 1:
            scores = scores[:, None]
        if scores.ndim != 2 or len(scores) != len(texts):
            raise ModelError(
                f"The function {self.name} must return one row of scores for each of {len(texts)} texts, "
                f"not an array of shape {scores.shape}."
            )
        if not np.isfinite(scores).all():
            raise ModelError(f"The function {self.name} returned NaN or infinite scores.")
        return scores

    def ask_in_batches(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Scores [v] of different texts, asked a batch at a time."""
        scores_of: dict[str, np.ndarray] = {}
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            scores = self.ask(batch)
            scores_of.update(zip(batch, scores, strict=True))
            size = len(batch)
            meter.count_passes(size)
            progress.report(start + size, len(texts), "texts")
        return scores_of

    def output_names(self, width: int) -> tuple[str, ...]:
        """What the function's outputs are called: its labels, or their numbers."""
        if not self.labels:
            return tuple(f"output {number}" for number in range(width))
        named = len(self.labels)
        if named != width:
            raise InputError(
                f"The function {self.name} gives {width} scores, but {named} labels were named."
            )
        return self.labels

    # -- texts and targets --------------------------------------------------------------------------

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        return [self.encode_one(example) for example in examples]

    def encode_one(self, example: Example) -> Encoding:
        """The words of one example."""
        if example.pair is not None:
            raise InputError(
                "A wrapped function takes single texts, not pairs: join them in one text."
            )
        return axis_of_words(example)

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        texts = [encoding.texts[0] for encoding in encodings]
        scores = self.ask(texts)
        return [self.prediction_from(row) for row in scores]

    def prediction_from(self, scores: np.ndarray) -> Prediction:
        """The output with the highest score [v]."""
        names = self.output_names(len(scores))
        order = np.argsort(-scores, kind="stable")
        best = order[:BEST].tolist()
        top = []
        outcomes = []
        for number in best:
            score = float(scores[number])
            top.append((names[number], score))
            outcomes.append((number,))
        _, value = top[0]
        return Prediction(
            target=output_target(best[0], names),
            value=value,
            top=tuple(top),
            outcomes=tuple(outcomes),
            probable=False,
        )

    def resolve_targets(
        self, encoding: Encoding, target_spec: TargetSpec = PREDICTED
    ) -> list[tuple[Encoding, Target]]:
        if target_spec.output not in (None, "logit"):
            raise InputError(
                "The value of a wrapped function is what it returns: leave the output away."
            )
        prediction = target_spec.prediction or self.predict([encoding])[0]
        if target_spec.target is None and target_spec.contrast is None:
            return [(encoding, prediction.target)]

        _, width = self.ask([encoding.texts[0]]).shape
        names = self.output_names(width)
        if target_spec.target is None:
            outputs = [prediction.target.ids[0]]
        elif target_spec.target == "all":
            outputs = list(range(len(names)))
        else:
            outputs = [self.output_number(target_spec.target, names)]
        if target_spec.contrast is None:
            return [(encoding, output_target(output, names)) for output in outputs]

        rival = self.output_number(target_spec.contrast, names)
        name_of_rival = names[rival]
        if outputs == [rival]:
            raise InputError(
                f"The target and the contrast are both {name_of_rival!r}: name two outputs."
            )
        targets = []
        for output in outputs:
            if output != rival:
                target = output_target(output, names)
                contrasted = replace(target, contrast=(rival,), contrast_text=name_of_rival)
                targets.append((encoding, contrasted))
        return targets

    def output_number(self, wanted: object, names: tuple[str, ...]) -> int:
        """The number of an output that is named by its label, or by its number as text."""
        name = str(wanted)
        if name in names:
            return names.index(name)
        place = index_in_spec(name, len(names))
        if place is None:
            outputs = ", ".join(names)
            raise InputError(f"{self.name} has no output {name!r}: it has {outputs}.")
        return place

    # -- scores -------------------------------------------------------------------------------------

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        if removal not in (None, "delete"):
            raise Unsupported(
                f"{self.name} is a plain function: words can only be deleted, not removed by {removal!r}."
            )
        if memory is None:
            memory = Memory(limit=0)

        recalls = [memory.recall(question, "delete", None) for question in questions]
        texts_of_questions: list[list[str]] = []
        different: dict[str, None] = {}  # texts, in the order in which they are first needed
        for recall in recalls:
            question = recall.question
            texts = [kept_text(question.encoding, row) for row in question.keep]
            texts_of_questions.append(texts)
            different.update(dict.fromkeys(texts))
        scores_of = self.ask_in_batches(list(different))

        answers = []
        for recall, texts in zip(recalls, texts_of_questions, strict=True):
            rows = [scores_of[text] for text in texts]
            scored = answers_from_scores(recall.question, rows)
            answers.append(recall.complete(scored))
            memory.store(recall, scored)
        return answers


def output_target(output: int, names: tuple[str, ...]) -> Target:
    """An output of the function as a target."""
    return Target("label", (output,), text=names[output], output="logit")


def answers_from_scores(question: Question, rows: list[np.ndarray]) -> Scored:
    """value, rank and margin of one question from its rows of scores [v]."""
    label = question.target.ids[0]
    contrast = question.target.contrast or ()
    if rows:
        scores = np.stack(rows)
    else:  # any width will do that has both outputs and another one
        last = max(label, *contrast, 0)
        scores = np.zeros((0, last + 2))

    mine = scores[:, label]
    rest = np.delete(scores, label, axis=1)
    value = mine
    if contrast:
        other = scores[:, contrast[0]]
        value = mine - other
    elif rest.shape[1]:
        other = rest.max(1)
    else:
        other = mine

    margin = mine - other
    is_better = scores > mine[:, None]
    rank = is_better.sum(1)
    predicted = scores.argmax(1)
    return Scored(
        value=value[:, None],
        rank=rank[:, None],
        margin=margin[:, None],
        predicted=predicted[:, None],
        forwards=len(scores),
        tokens=int(question.keep.sum()),
    )


def axis_of_words(example: Example) -> Encoding:
    """The words of a text, or of a pair, as tokens."""
    texts: tuple[str, ...] = (example.text,)
    segments: tuple[str, ...] = ("text",)
    if example.pair is not None:
        texts = (example.text, example.pair)
        segments = ("first", "second")
    whole = "".join(texts)
    encoded = whole.encode("utf-8", "surrogatepass")
    limits.check_text_size(len(encoded))

    words: list[str] = []
    spans: list[tuple[int, int, int]] = []  # number of the text, start, end
    for number, text in enumerate(texts):
        for start, end in split_words(text):
            words.append(text[start:end])
            spans.append((number, start, end))
    size = len(spans)
    segment, starts, ends = np.array(spans).T
    fixed = [in_template(example, start) for start in starts]
    return Encoding(
        ids=np.zeros(size),
        tokens=tuple(words),
        segments=segments,
        texts=texts,
        segment=segment,
        start=starts,
        end=ends,
        positions=np.arange(size),
        fixed=np.array(fixed),
        slots=example.slots,
        id=example.id,
    )


def in_template(example: Example, start: int) -> bool:
    """Whether the word that begins at a character is part of a prompt template, and so may not be removed."""
    inside = any(slot.start <= start < slot.end for slot in example.slots)
    return bool(example.slots) and not inside


def kept_text(encoding: Encoding, keep: np.ndarray) -> str:
    """The text with the removed words cut out, together with the space before them."""
    text = encoding.texts[0]
    result = ""
    cursor = 0
    for end, kept in zip(encoding.end, keep, strict=True):
        if kept:
            result += text[cursor:end]
        cursor = end
        # the space before a removed word has not been written; the next kept word brings its own
    result += text[cursor:]
    return result.strip()
