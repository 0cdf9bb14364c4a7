"""Encoding, Units, Target and Explanation: the records that everything shares, beside Example, and their fields of
read-only arrays.

    Example --encode--> Encoding --resolve_targets--> Target;  Units group the Encoding;  Explanation is the result.

They are plain, frozen and validated; NumPy and JSON, nothing else. No torch and no rendering here: the terminal, the
page, the store and the metrics read the same record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from raison.core.errors import InputError
from raison.core.example import Example, Slot, Span
from raison.core.findings import Certificate, Grounding, PredictionSummary, SearchStep
from raison.core.json_record import (
    JsonObject,
    Record,
    json_field,
    record_field,
    records_field,
)
from raison.core.spec import Spec

__all__ = [
    "Encoding",
    "Example",
    "Explanation",
    "Record",
    "Slot",
    "Span",
    "Spec",
    "Target",
    "Units",
]


def array_field(dtype: str, *, default: object = MISSING) -> Any:
    """A dataclass field that holds a read-only NumPy array of `dtype`, a list in JSON."""
    convert = partial(read_only_array, dtype=dtype)
    return field(default=default, metadata={"convert": convert})


def read_only_array(values: object, dtype: str) -> np.ndarray:
    """A copy of the values that nobody can write to."""
    copied = np.array(values, dtype=dtype)
    copied.setflags(write=False)
    return copied


@dataclass(frozen=True, eq=False)
class Encoding(Record):
    """The tokens of one example on one axis t, whatever the number of texts behind it."""

    ids: np.ndarray = array_field("int64")  # [t] vocabulary ids
    # [t] what a person reads: a piece of the text, or the name of a special token
    tokens: tuple[str, ...]
    # names of the texts: text | first, second | question, context | source, prefix
    segments: tuple[str, ...]
    texts: tuple[str, ...]  # the texts themselves
    segment: np.ndarray = array_field("int64")  # [t] index into segments
    # [t] first character in the segment's text; -1 for special tokens
    start: np.ndarray = array_field("int64")
    end: np.ndarray = array_field("int64")  # [t] one past the last character
    # [t] what the model calls the position, counted per stream from 0
    positions: np.ndarray = array_field("int64")
    # [t] may never be removed: special tokens, a prompt template
    fixed: np.ndarray = array_field("bool")
    # [t] token_type_ids, where the model has them
    types: np.ndarray | None = array_field("int64", default=None)
    slots: tuple[Slot, ...] = records_field("Slot", default=())
    truncated: int = 0  # tokens cut off because the text was too long
    id: str = ""  # of the example

    def validate(self) -> None:
        columns = {
            "tokens": self.tokens,
            "segment": self.segment,
            "start": self.start,
            "end": self.end,
            "positions": self.positions,
            "fixed": self.fixed,
            "types": self.types,
        }
        size = len(self.ids)
        for name, column in columns.items():
            if column is None:
                continue
            length = len(column)
            if length != size:
                raise InputError(f"An encoding of {size} tokens has {length} {name}.")

        count = len(self.segments)
        if count != len(self.texts):
            raise InputError("An encoding needs one text for each segment.")
        if size:
            first = self.segment.min()
            last = self.segment.max()
            if first < 0 or last >= count:
                raise InputError(f"An encoding of {count} segments has tokens of another segment.")

    def __len__(self) -> int:
        return len(self.ids)

    def text_of(self, t: int) -> str:
        """The characters behind token `t` (its name, for a special token)."""
        start = self.start[t]
        if start < 0:
            return self.tokens[t]
        end = self.end[t]
        segment = self.segment[t]
        text: str = self.texts[segment]
        return text[start:end]


@dataclass(frozen=True, eq=False)
class Units(Record):
    """What is removed, selected or shown as one: a partition of the tokens that may be removed."""

    level: str  # token | word | sentence | passage | slot
    # [t] unit of each token, -1 where the token may not be removed
    of: np.ndarray = array_field("int64")
    names: tuple[str, ...]  # [u] what a person reads
    # [u] (segment, start, end) in characters; start -1 for special tokens
    spans: tuple[tuple[int, int, int], ...]

    def validate(self) -> None:
        spans = tuple(tuple(map(int, span)) for span in self.spans)
        object.__setattr__(self, "spans", spans)
        count = len(self.names)
        if count != len(spans):
            raise InputError("Units need one name and one span each.")
        if any(len(span) != 3 for span in spans):
            raise InputError("The span of a unit has three numbers: segment, start and end.")
        below_none = self.of < -1  # would count from the last unit
        if below_none.any():
            raise InputError("The unit of a token is a number from 0 on, or -1 for none.")

        of_a_unit = self.of[self.of >= 0]
        present = np.unique(of_a_unit)
        named = np.arange(count)
        if not np.array_equal(present, named):
            raise InputError(
                "Every unit must have at least one token, and every unit number a name."
            )

    def __len__(self) -> int:
        return len(self.names)

    def keep(self, chosen: np.ndarray) -> np.ndarray:
        """Token keep-masks [.., t] of unit keep-masks [.., u]; what is no unit is kept."""
        *others, _ = chosen.shape
        always_kept = np.ones((*others, 1), bool)  # where `of` is -1
        padded = np.concatenate([chosen, always_kept], axis=-1)
        return padded[..., self.of]


KINDS = ("label", "tag", "span", "token", "text")
OUTPUTS = ("logit", "log_prob", "prob")
FORMAT = 2  # of explanations in JSON; 1 was that of 0.1.0, before its release


@dataclass(frozen=True, eq=False)
class Target(Record):
    """What is explained. Pure data; the adapter that made it knows how to read it off the model."""

    kind: str  # label | tag | span | token | text
    ids: tuple[int, ...]  # the outcome: a class, a tag for each row, the token ids
    # on the axis of the encoding; a token target is read one row earlier
    positions: tuple[int, ...] = ()
    text: str = ""  # what a person calls it
    output: str = "logit"  # what `value` is: logit | log_prob | prob
    contrast: tuple[int, ...] | None = None  # why this rather than that
    contrast_text: str = ""

    def validate(self) -> None:
        if self.kind not in KINDS:
            kinds = ", ".join(KINDS)
            raise InputError(f"The kind of a target is one of {kinds}, not {self.kind!r}.")
        if self.output not in OUTPUTS:
            outputs = ", ".join(OUTPUTS)
            raise InputError(f"The output of a target is one of {outputs}, not {self.output!r}.")

        count = len(self.ids)
        if self.output == "prob" and count > 1:
            raise InputError(
                f"{self.text!r} has {count} parts, whose probabilities can't be added: use log_prob, not prob."
            )
        if self.contrast is not None:
            contrast = tuple(map(int, self.contrast))
            object.__setattr__(self, "contrast", contrast)
            self.check_contrast(contrast)
        ids = tuple(map(int, self.ids))
        object.__setattr__(self, "ids", ids)
        positions = tuple(map(int, self.positions))
        object.__setattr__(self, "positions", positions)

        position_count = len(positions)
        one_position_each = 0 < count == position_count
        if self.generated and not one_position_each:
            raise InputError(
                "A written target needs at least one token, and one position for each, "
                f"not {count} tokens and {position_count} positions."
            )
        first_row = min(self.rows, default=0)
        if first_row < 0:
            raise InputError(
                "A target can't be read before the first token: what is written follows something."
            )

    def check_contrast(self, contrast: tuple[int, ...]) -> None:
        """Refuse a contrast that is not read from the same words as the target."""
        names = f"{self.text!r} and {self.contrast_text!r}"
        length = len(self.ids)
        length_of_contrast = len(contrast)
        if length_of_contrast != length:
            raise InputError(
                f"{names} differ in length ({length} and {length_of_contrast} tokens): "
                "a contrast needs two outcomes of the same length."
            )
        all_but_last = tuple(self.ids[:-1])
        if contrast[:-1] != all_but_last:
            raise InputError(
                f"{names} part before their last token, so they are not read from the same words: "
                "explain each by itself, or contrast single tokens."
            )

    @property
    def generated(self) -> bool:
        """True where the target is text that the model writes, so that it can't see what comes later."""
        return self.kind in ("token", "text")

    @property
    def rows(self) -> np.ndarray:
        """Rows of the axis at which the model gives its answer (none for a label)."""
        positions = np.array(self.positions, dtype=np.int64)
        if self.generated:
            return positions - 1
        return positions

    def scope(self, size: int) -> np.ndarray:
        """[t] the positions that the target may see."""
        if not self.generated:
            return np.ones(size, bool)
        return np.arange(size) < self.positions[0]

    def inputs(self, size: int) -> np.ndarray:
        """[t] what the model reads: the scope and the target's own earlier tokens."""
        if not self.generated:
            return np.ones(size, bool)
        return np.arange(size) < self.positions[-1]

    def given(self, encoding: Encoding) -> np.ndarray:
        """[t] what can't be removed for this target: fixed tokens, the rows it is read from, its own tokens."""
        size = len(encoding)
        given = encoding.fixed.copy()
        given[self.rows] = True
        inputs = self.inputs(size)
        scope = self.scope(size)
        own_tokens = inputs & ~scope
        return np.asarray(given & inputs | own_tokens)

    def visible(self, keep: np.ndarray, encoding: Encoding) -> np.ndarray:
        """[.. t] what the model is shown of a text of which `keep` [.. t] stays: that, and what can't be removed."""
        given = self.given(encoding)
        inputs = self.inputs(len(encoding))
        return np.asarray((keep | given) & inputs)

    def free(self, encoding: Encoding) -> np.ndarray:
        """[t] what may be removed."""
        given = self.given(encoding)
        scope = self.scope(len(encoding))
        return np.asarray(scope & ~given)


@dataclass(frozen=True, eq=False)
class Explanation(Record):
    """The one result: why this target, in these units, by this method, with this meaning of absence."""

    encoding: Encoding = record_field("Encoding")
    units: Units = record_field("Units")
    target: Target = record_field("Target")
    scores: np.ndarray = array_field("float64")  # [u]
    method: str  # the spec, e.g. integrated_gradients(steps=64)
    model: str  # its name
    removal: str | None = None  # what absence means; None where nothing was removed
    selected: np.ndarray | None = array_field("bool", default=None)  # [u] the rationale
    # units in the order they were chosen
    order: np.ndarray | None = array_field("int64", default=None)
    prediction: PredictionSummary | None = record_field("PredictionSummary", default=None)
    certificate: Certificate | None = record_field("Certificate", default=None)  # of a rationale
    # how a search found its rationale
    steps: tuple[SearchStep, ...] = records_field("SearchStep", default=())
    # what an answer over passages rests on
    grounding: Grounding | None = record_field("Grounding", default=None)
    notes: tuple[str, ...] = ()  # sentences that a reader needs before believing the picture
    parts: JsonObject = json_field()  # named arrays: per token, per layer, ...
    artifacts: dict[str, str] = json_field()  # name -> content hash
    diagnostics: JsonObject = json_field()  # numbers of the method's own
    cost: JsonObject = json_field(apart=True)  # seconds, forwards, tokens
    format: int = field(default=FORMAT, metadata={"apart": True})  # of this record in JSON

    @classmethod
    def check_format(cls, data: Mapping[str, object]) -> None:
        written = data.get("format", 1)
        is_explanation = "encoding" in data
        if is_explanation and written != FORMAT:
            raise InputError(
                f"This explanation has format {written}, and this raison reads format {FORMAT}: make it "
                "again with this version, or read it with the version that wrote it."
            )

    def validate(self) -> None:
        count = len(self.units)
        score_count = len(self.scores)
        if score_count != count:
            raise InputError(f"{score_count} scores of {self.method} do not fit {count} units.")
        size = len(self.encoding)
        grouped = len(self.units.of)
        if grouped != size:
            raise InputError(f"Units of {grouped} tokens do not fit {size} tokens.")
        is_finite = np.isfinite(self.scores)
        if not is_finite.all():
            raise InputError("An explanation can't hold NaN or infinite scores.")

        if self.selected is not None:
            selected_count = len(self.selected)
            if selected_count != count:
                raise InputError(f"A selection of {selected_count} does not fit {count} units.")
        if self.order is not None:
            all_units = np.arange(count)
            named_once = np.intersect1d(self.order, all_units)
            if len(named_once) != len(self.order):
                raise InputError(
                    f"An order names each of the {count} units at most once, and nothing else."
                )

    @property
    def tokens(self) -> tuple[str, ...]:
        """What the scores belong to: the names of the units."""
        return self.units.names

    @property
    def scope(self) -> np.ndarray:
        """[t] the positions that the target may see."""
        return self.target.scope(len(self.encoding))
