"""Explanations from and for other tools: ERASER's JSONL, Inseq's JSON, tokens and scores, Parquet.

What was made elsewhere has tokens of its own. They are found in the text, one after the other, and a unit of ours gets
the sum of the scores of the tokens that it shares characters with, in proportion; so any tokenizer will do. Where too
many are found nowhere, the explanation is about another text, and is refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.core import limits
from raison.core.documents import CLASSES, Document, documents_of, named_documents, tokens_of, units_of_tokens
from raison.core.errors import InputError, MissingExtra
from raison.core.outputs import replacing
from raison.core.records import Encoding, Example, Explanation, Units
from raison.core.spec import Spec
from raison.datasets.conllu import lines_of
from raison.datasets.spans import runs
from raison.methods.base import Answer, Batch, Method
from raison.models.protocol import Model

__all__ = ["Elsewhere", "Exporter", "Made", "read_made"]

MARKS = ("Ġ", "▁", "##", "</w>", "Ċ")  # of sub-words, by the tokenizers in use
SPECIAL = re.compile(r"\[.*\]|<.*>")  # [CLS], </s>, <|endoftext|>
SOFT, HARD = "soft_rationale_predictions", "hard_rationale_predictions"  # ERASER's names
FOREIGN = 0.25  # share of tokens that may stand nowhere in the text: rare letters that a tokenizer writes otherwise

Part = tuple[list[str], np.ndarray | None, np.ndarray | None]  # of a document: tokens, scores, which are chosen


@dataclass(frozen=True)
class Written:
    """The units of an explanation as raison wrote them."""

    spans: tuple[tuple[int, int, int], ...]  # segment, first character, end
    scores: np.ndarray  # [u]
    selected: np.ndarray | None  # [u]


@dataclass(frozen=True)
class Made:
    """One explanation that was made elsewhere."""

    id: str  # of the example; empty: the file names none, and its order is that of the data
    method: str
    tokens: tuple[str, ...]
    scores: np.ndarray | None  # [k] of the tokens
    selected: np.ndarray | None = None  # [k]
    text: str | None = None
    target: Any = None
    about: int | None = None  # of two texts the tokens are those of this one alone
    written: Written | None = None  # of a file that raison wrote


# -- reading ---------------------------------------------------------------------------------------------------


def read_made(path: str | os.PathLike[str], examples: Mapping[str, Example] | None = None) -> list[Made]:
    """The explanations of a file; the `examples` by id are needed where the file has no texts (ERASER)."""
    file = Path(path)
    if file.suffix not in (".json", ".jsonl"):
        raise InputError(f"Explanations are read from a .jsonl or .json file, not from {file.name!r}.")
    if file.suffix == ".json":
        found = list(from_inseq(file))
    else:
        found = []
        for number, line in enumerate(lines_of(file), 1):
            if line.strip():
                try:
                    found.append(one_line(limits.from_json(line), examples or {}))
                except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
                    told = error if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
                    raise InputError(f"Line {number} of {file.name!r} is no explanation ({told}): mend it.") from None
    if not found:
        raise InputError(f"{str(file)!r} holds no explanation: name a file that does.")
    return found


def one_line(record: Any, examples: Mapping[str, Example]) -> Made:
    """A record with tokens and scores, or one of ERASER's."""
    if not isinstance(record, dict):
        raise InputError("not an object with fields")
    if "annotation_id" in record:
        return from_eraser(record, examples)
    tokens = tuple(map(str, record["tokens"]))
    scores = numbers(record["scores"], len(tokens)) if record.get("scores") is not None else None
    chosen = numbers(record["selected"], len(tokens)) > 0 if record.get("selected") is not None else None
    if scores is None and chosen is None:
        raise InputError("neither scores nor a selection")
    method, name, text = str(record.get("method", "elsewhere")), record.get("id"), record.get("text")
    if text is not None and not isinstance(text, str):
        raise InputError(f"a text that is {type(text).__name__}")
    return Made("" if name is None else str(name), method, tokens, scores, chosen, text, record.get("target"))


def numbers(values: Any, count: int) -> np.ndarray:
    found = np.array(values, dtype=np.float64)
    if found.shape != (count,):
        raise InputError(f"{count} tokens, but scores of the shape {list(found.shape)}")
    if not np.isfinite(found).all():
        raise InputError("a score that is not a number")
    return found


def from_eraser(record: dict[str, Any], examples: Mapping[str, Example]) -> Made:
    """Rationales over the tokens of documents: hard ones as ranges, soft ones as a score each.

    The documents of an ERASER set are known by their names. Elsewhere a pair has one rationale for each text, or one
    for that in which people marked words: the other is only a question about it, or its choices.
    """
    name = str(record["annotation_id"])
    if name not in examples:
        raise InputError(f"{'the data set has' if examples else 'without a data set there is'} no text called {name!r}")
    example, rationales = examples[name], record["rationales"]
    texts = [example.text] if example.pair is None else [example.text, example.pair]
    known = named_documents(example)
    if known:
        about = None if example.pair is None else known[0].segment
        parts = over_named_documents(rationales, known, texts)
    else:
        if len(rationales) not in (1, len(texts)):
            raise InputError(f"{len(rationales)} documents, where {len(texts)} are explained")
        about = document_of(example) if len(rationales) < len(texts) else None
        sides = texts if about is None else texts[about : about + 1]
        parts = [over_document(rationale, text) for rationale, text in zip(rationales, sides, strict=True)]
    tokens = tuple(token for part in parts for token in part[0])
    soft, hard = ([part[k] for part in parts] for k in (1, 2))
    scores = np.concatenate([s for s in soft if s is not None]) if all(s is not None for s in soft) else None
    chosen = np.concatenate([h for h in hard if h is not None]) if all(h is not None for h in hard) else None
    if scores is None and chosen is None:
        raise InputError("neither scores nor a selection")
    target = record.get("classification", record.get("target"))
    made = Made(name, str(record.get("method", "elsewhere")), tokens, scores, chosen, None, target, about)
    return made if "units" not in record else as_written(made, record["units"])


def over_named_documents(
    rationales: Sequence[dict[str, Any]], known: Sequence[Document], texts: Sequence[str]
) -> list[Part]:
    """One part for each document in the order of the text, whatever the order in the file.

    A document without a rationale has nothing chosen in it, and scores of 0. A single rationale without the name of a
    document is that of the only one.
    """
    by_name: dict[str, dict[str, Any]] = {}
    for rationale in rationales:
        name = rationale.get("docid", known[0].name if len(known) == 1 else None)
        if name in by_name:
            raise InputError(f"two rationales of the document {name!r}")
        if name not in [document.name for document in known]:
            names = ", ".join(document.name for document in known)
            raise InputError(f"a rationale of the document {name!r}, where the text has {names}")
        by_name[name] = rationale
    given = list(by_name.values())
    kinds = [kind for kind in (SOFT, HARD) if all(rationale.get(kind) is not None for rationale in given)]
    parts = []
    for document in known:
        text = texts[document.segment][document.start : document.end]
        parts.append(over_document(by_name.get(document.name) or nothing(kinds, text), text))
    return parts


def nothing(kinds: Sequence[str], text: str) -> dict[str, Any]:
    """The rationale of a document in which nothing was chosen."""
    empty = {SOFT: [0.0] * len(tokens_of(text)), HARD: []}
    return {kind: empty[kind] for kind in kinds}


def document_of(example: Example) -> int:
    """Which text of a pair is the document of a single rationale: that with gold, else the second."""
    sides = {int(span.segment in ("second", "context")) for span in example.gold}
    return 0 if sides == {0} else 1


def as_written(made: Made, stored: dict[str, Any]) -> Made:
    """The units of an explanation that raison wrote: white-space tokens alone would not give their scores back."""
    spans = tuple((int(s), int(a), int(b)) for s, a, b in stored["spans"])
    scores = numbers(stored["scores"], len(spans))
    chosen = None if stored.get("selected") is None else numbers(stored["selected"], len(spans)) > 0
    return replace(made, written=Written(spans, scores, chosen))


def over_document(rationale: dict[str, Any], text: str) -> Part:
    """The tokens of one document, their scores and which of them are chosen."""
    tokens = [text[start:end] for start, end in tokens_of(text)]
    soft, hard = rationale.get(SOFT), rationale.get(HARD)
    chosen = None
    if hard is not None:
        chosen = np.zeros(len(tokens), bool)
        for span in hard:
            if not 0 <= span["start_token"] < span["end_token"] <= len(tokens):
                raise InputError(f"the tokens {span['start_token']}..{span['end_token']} of a text of {len(tokens)}")
            chosen[span["start_token"] : span["end_token"]] = True
    return tokens, None if soft is None else numbers(soft, len(tokens)), chosen


def from_inseq(file: Path) -> Iterator[Made]:
    """Inseq's saved attributions: the mean over what was generated, on the source or on the prompt."""
    try:
        whole = limits.from_json("\n".join(lines_of(file)))
        sequences = whole["sequence_attributions"]
        method = str((whole.get("info") or {}).get("attribution_method", "inseq"))
        for one in sequences:
            start = int(one.get("attr_pos_start", 0) or 0)
            source = one.get("source_attributions")
            side = one["source"] if source is not None else one["target"][:start]
            table = np.array(
                plain_array(source if source is not None else one["target_attributions"]), dtype=np.float64
            )
            table = table[: len(side)]
            while table.ndim > 2:  # several dimensions of an embedding: their length
                table = np.linalg.norm(table, axis=-1)
            scores = np.nan_to_num(table).mean(1) if table.ndim == 2 else np.nan_to_num(table)
            tokens = tuple(str(token["token"] if isinstance(token, dict) else token) for token in side)
            yield Made("", method, tokens, numbers(scores, len(tokens)))
    except InputError as error:
        raise InputError(f"{file.name!r} is no file of Inseq ({error}): save it with its own `save`.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file.name!r} is no file of Inseq ({type(error).__name__}: {error}): save it with its own `save`."
        ) from None


def plain_array(value: Any) -> Any:
    """Inseq may wrap an array as {"__ndarray__": [...]}."""
    return value["__ndarray__"] if isinstance(value, dict) and "__ndarray__" in value else value


# -- on our units --------------------------------------------------------------------------------------------------


def spans_of(tokens: Sequence[str], text: str) -> list[tuple[int, int] | None]:
    """Characters of each token, in order; None for what does not stand in the text (special tokens)."""
    found: list[tuple[int, int] | None] = []
    cursor = 0
    folded = text.lower() if text.lower() and len(text.lower()) == len(text) else text
    for token in tokens:
        bare = bared(token)
        # an uncased tokenizer writes small letters: whichever stands nearer
        places = [text.find(bare, cursor), folded.find(bare.lower(), cursor)] if bare else []
        place = min((p for p in places if p >= 0), default=-1)
        between = text[cursor:place].strip() if place >= 0 else ""
        if place < 0 or len(between) > 40:  # far away: it is another word of the same letters
            found.append(None)
            continue
        found.append((place, place + len(bare)))
        cursor = place + len(bare)
    return found


def bared(token: str) -> str:
    """A token without the marks of its tokenizer."""
    for mark in MARKS:
        token = token.removeprefix(mark).removesuffix(mark)
    return token.strip()


def placed(made: Made, encoding: Encoding) -> tuple[list[tuple[int, int] | None], list[int], int]:
    """Characters of each token in all texts one after the other, where each text begins, and how many stand nowhere."""
    texts = encoding.texts if made.about is None else encoding.texts[made.about : made.about + 1]
    whole = made.about is None
    begins = [sum(len(text) + 1 for text in texts[:k]) if whole else 0 for k in range(len(encoding.texts))]
    spans = spans_of(made.tokens, "\n".join(texts))
    words = [(t, s) for t, s in zip(made.tokens, spans, strict=True) if s or (bared(t) and not SPECIAL.fullmatch(t))]
    foreign = [token for token, span in words if span is None]
    if len(foreign) >= max(1, FOREIGN * len(words)) or not words:
        such = f", such as {foreign[0]!r}," if foreign else ""
        raise InputError(
            f"{len(foreign)} of {len(words)} tokens of the explanation of {encoding.id!r}{such} do not stand in its "
            f"text {texts[0][:40]!r}: are the ids those of the data set?"
        )
    return spans, begins, len(foreign)


def on_units(made: Made, encoding: Encoding, units: Units) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Scores [u], the selection [u] where there is one, and how many tokens stand nowhere in the text."""
    if made.written is not None and made.written.spans == tuple(map(tuple, units.spans)):
        return made.written.scores, made.written.selected, 0
    spans, begins, foreign = placed(made, encoding)
    scores = np.zeros(len(units))
    chosen = np.zeros(len(units), bool)
    values = made.scores if made.scores is not None else made.selected.astype(float)  # type: ignore[union-attr]
    for k, span in enumerate(spans):
        if span is None:
            continue
        for u, (segment, start, end) in enumerate(units.spans):
            if made.about not in (None, segment):
                continue
            begin = begins[segment]
            shared = min(begin + end, span[1]) - max(begin + start, span[0])
            if start >= 0 and shared > 0:
                scores[u] += values[k] * shared / (span[1] - span[0])
                if made.selected is not None and made.selected[k]:
                    chosen[u] = True
    return scores, chosen if made.selected is not None else None, foreign


@dataclass(frozen=True)
class Elsewhere(Method):
    """Explanations that were made elsewhere, as a method: it knows its texts and no others."""

    made: Mapping[str, Made] = field(default_factory=dict)
    title: str = "elsewhere"
    name = "elsewhere"
    axis = "unit"

    def spec(self) -> Spec:
        return Spec(self.title)

    def __call__(self, model: Model, batch: Batch) -> list[Answer]:
        answers = []
        for encoding, units in zip(batch.encodings, batch.units, strict=True):
            if encoding.id not in self.made:
                raise InputError(
                    f"{self.title} has no explanation of {encoding.id!r}: give every method the same texts."
                )
            scores, chosen, foreign = on_units(self.made[encoding.id], encoding, units)
            answers.append(Answer(scores, selected=chosen, diagnostics={"unplaced": foreign} if foreign else {}))
        return answers


# -- writing -------------------------------------------------------------------------------------------------------


@dataclass
class Exporter:
    """Collects explanations and writes them at the end, in one go."""

    path: Path
    rows: list[tuple[Example, Explanation]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path.suffix not in (".jsonl", ".parquet"):
            raise InputError(
                f"Explanations are exported to a .jsonl (ERASER) or .parquet file, not to {self.path.name!r}."
            )
        if self.path.suffix == ".parquet":
            arrow()

    def add(self, example: Example, found: Explanation) -> None:
        self.rows.append((example, found))

    def write(self) -> None:
        if self.path.suffix == ".parquet":
            pa, pq = arrow()
            table = pa.Table.from_pylist([row_of(e, x) for e, x in self.rows])
            with replacing(self.path) as half:
                pq.write_table(table, half)
            return
        lines = (json.dumps(eraser_of(e, x), ensure_ascii=False) for e, x in self.rows)
        with replacing(self.path) as half:
            half.write_text("\n".join(lines) + "\n", encoding="utf-8")


def arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "data", "A Parquet file") from None
    return pa, pq


def row_of(example: Example, found: Explanation) -> dict[str, Any]:
    """A flat row: what was explained, by what, and the scores of the units."""
    return {
        "id": example.id, "text": example.text, "pair": example.pair, "model": found.model, "method": found.method,
        "target": found.target.text, "removal": found.removal, "units": list(found.units.names),
        "start": [span[1] for span in found.units.spans], "end": [span[2] for span in found.units.spans],
        "segment": [found.encoding.segments[span[0]] for span in found.units.spans],
        "scores": found.scores.tolist(),
        "selected": None if found.selected is None else found.selected.tolist(),
    }  # fmt: skip


def eraser_of(example: Example, found: Explanation) -> dict[str, Any]:
    """ERASER's record of a prediction: scores and chosen ranges over the tokens of each document.

    ERASER's scorer takes a class with the scores of the classes or neither, under the publisher's names.
    """
    documents = documents_of(example, found.encoding.segments)
    prediction = found.prediction
    chosen = None if found.selected is None else [int(each) for each in found.selected]
    record = {
        "annotation_id": example.id, "method": found.method,
        "rationales": [rationale_of(document, found) for document in documents],
        "target": found.target.text,
        "units": {"spans": list(found.units.spans), "scores": found.scores.tolist(), "selected": chosen},
    }  # fmt: skip
    if prediction is not None and prediction.top and prediction.probability is not None:
        names = example.meta.get(CLASSES, {})
        record["classification"] = names.get(prediction.text, prediction.text)
        record["classification_scores"] = {names.get(name, name): score for name, score in prediction.top}
    return record


def rationale_of(document: Document, found: Explanation) -> dict[str, Any]:
    """The scores and chosen ranges of one document."""
    places = tokens_of(found.encoding.texts[document.segment], document)
    inside = units_of_tokens(document, places, found.units)
    soft = [float(max((found.scores[u] for u in units), key=abs, default=0.0)) for units in inside]
    rationale: dict[str, Any] = {"docid": document.name, SOFT: soft}
    if found.selected is not None:
        chosen = [any(found.selected[u] for u in units) for units in inside]
        rationale[HARD] = [{"start_token": start, "end_token": end} for start, end in runs(chosen)]
    return rationale
