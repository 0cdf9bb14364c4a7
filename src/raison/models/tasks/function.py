"""Any Python function from texts to scores, explained by asking it again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from raison.core import limits, progress
from raison.core.errors import InputError, ModelError, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.core.spec import place_of
from raison.core.units import words
from raison.models.protocol import PREDICTED, Prediction, Question, Scored, TargetSpec, Trace
from raison.models.runner import meter
from raison.models.runner.score_cache import Memory

__all__ = ["Function", "axis_of_words"]

BATCH = 256  # texts per call of the function


class Function:
    """A black box `list[str] -> scores [n classes]` (or [n]); its tokens are words, absence is deletion."""

    task = "callable"
    offers = frozenset({"score"})
    removals = ("delete",)
    hf = None
    tokenizer = None

    def __init__(self, function: Callable[[list[str]], Any], name: str, labels: Sequence[str] | None = None):
        self.function = function
        self.name = name
        self.labels = tuple(labels) if labels else ()

    def ask(self, texts: list[str]) -> np.ndarray:
        """[n v] scores; anything else that the function returns is refused with a sentence."""
        try:
            scores = np.asarray(self.function(texts), dtype=np.float64)
        except Exception as error:
            raise ModelError(f"The function {self.name} failed on a list of texts ({error}).") from error
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

    def names(self, width: int) -> tuple[str, ...]:
        if self.labels and len(self.labels) != width:
            raise InputError(
                f"The function {self.name} gives {width} scores, but {len(self.labels)} labels were named."
            )
        return self.labels or tuple(f"output {i}" for i in range(width))

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        return [self.encode_one(example) for example in examples]

    def encode_one(self, example: Example) -> Encoding:
        if example.pair is not None:
            raise InputError("A wrapped function takes single texts, not pairs: join them in one text.")
        return axis_of_words(example)

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        answers = []
        for row in self.ask([encoding.texts[0] for encoding in encodings]):
            names = self.names(len(row))
            order = np.argsort(-row, kind="stable")[:5]
            top = tuple((names[i], float(row[i])) for i in order)
            target = Target("label", (int(order[0]),), text=names[order[0]], output="logit")
            answers.append(Prediction(target, float(row[order[0]]), top, tuple((int(i),) for i in order), False))
        return answers

    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        if target_spec.output not in (None, "logit"):
            raise InputError("The value of a wrapped function is what it returns: leave the output away.")
        said = target_spec.prediction or self.predict([encoding])[0]
        if target_spec.target is None and target_spec.contrast is None:
            return [(encoding, said.target)]
        names = self.names(self.ask([encoding.texts[0]]).shape[1])
        if target_spec.target is None:
            chosen = [said.target.ids[0]]
        else:
            chosen = (
                list(range(len(names))) if target_spec.target == "all" else [self.number(target_spec.target, names)]
            )
        rival = None if target_spec.contrast is None else self.number(target_spec.contrast, names)
        if chosen == [rival]:
            raise InputError(f"The target and the contrast are both {names[chosen[0]]!r}: name two outputs.")
        foil: dict[str, Any] = {} if rival is None else {"contrast": (rival,), "contrast_text": names[rival]}
        return [(encoding, Target("label", (i,), text=names[i], **foil)) for i in chosen if i != rival]

    def number(self, target_spec: Any, names: tuple[str, ...]) -> int:
        if str(target_spec) in names:
            return names.index(str(target_spec))
        if (place := place_of(str(target_spec), len(names))) is not None:
            return place
        raise InputError(f"{self.name} has no output {str(target_spec)!r}: it has {', '.join(names)}.")

    def trace(self, *args: Any, **kwargs: Any) -> Iterator[tuple[int, Trace]]:
        raise Unsupported(f"{self.name} is a plain function: it can be asked, but not looked into.")

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
        memory = Memory(limit=0) if memory is None else memory
        recalls = [memory.recall(question, "delete", None) for question in questions]
        texts = [[without(r.question.encoding, keep) for keep in r.question.keep] for r in recalls]
        rows = self.asked(list(dict.fromkeys(text for part in texts for text in part)))
        answers = []
        for recall, part in zip(recalls, texts, strict=True):
            scored = self.answer(recall.question, [rows[text] for text in part])
            answers.append(recall.complete(scored))
            memory.store(recall, scored)
        return answers

    def asked(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Scores of different texts, a batch at a time."""
        rows: dict[str, np.ndarray] = {}
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            rows.update(zip(part, self.ask(part), strict=True))
            meter.count(len(part))
            progress.report(start + len(part), len(texts), "texts")
        return rows

    def answer(self, question: Question, rows: list[np.ndarray]) -> Scored:
        """value, rank and margin of one question from its rows of scores [v]."""
        label = question.target.ids[0]
        width = max(label, *(question.target.contrast or (0,))) + 2  # of no rows
        scores = np.stack(rows) if rows else np.zeros((0, width))
        mine = scores[:, label]
        if question.target.contrast:
            other = scores[:, question.target.contrast[0]]
            value = mine - other
        else:
            rest = np.delete(scores, label, axis=1)
            other = rest.max(1) if rest.shape[1] else mine
            value = mine
        tokens = int(question.keep.sum())
        return Scored(
            value[:, None],
            (scores > mine[:, None]).sum(1)[:, None],
            (mine - other)[:, None],
            scores.argmax(1)[:, None],
            len(scores),
            tokens,
        )


def axis_of_words(example: Example) -> Encoding:
    """The words of a text, or of a pair, as tokens."""
    texts = (example.text,) if example.pair is None else (example.text, example.pair)
    limits.check_text(sum(len(text.encode("utf-8", "surrogatepass")) for text in texts))
    spans = [(number, a, b) for number, text in enumerate(texts) for a, b in words(text)]
    segment, starts, ends = np.array(spans).T
    inside = lambda a: any(slot.start <= a < slot.end for slot in example.slots)  # noqa: E731
    return Encoding(
        ids=np.zeros(len(spans)),
        tokens=tuple(texts[number][a:b] for number, a, b in spans),
        segments=("text",) if len(texts) == 1 else ("first", "second"),
        texts=texts,
        segment=segment,
        start=starts,
        end=ends,
        positions=np.arange(len(spans)),
        fixed=np.array([bool(example.slots) and not inside(a) for a in starts]),
        slots=example.slots,
        id=example.id,
    )


def without(encoding: Encoding, keep: np.ndarray) -> str:
    """The text with the removed words cut out, together with the space before them."""
    text, result, cursor = encoding.texts[0], "", 0
    for end, kept in zip(encoding.end, keep, strict=True):
        if kept:
            result += text[cursor:end]
        cursor = end
        # the space before a removed word has not been written; the next kept word brings its own
    return (result + text[cursor:]).strip()
