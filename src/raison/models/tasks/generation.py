"""What decoders and encoder-decoders share: targets that are written text, read one row earlier."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from raison.core import progress
from raison.core.errors import InputError, TooLong
from raison.core.records import Encoding, Target
from raison.models.attention.call import Call, running
from raison.models.protocol import Prediction, TargetSpec
from raison.models.runner.adapter import Adapter
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, streams_of

__all__ = ["LONGEST", "Writer", "extended", "vocabulary_columns"]

LONGEST = 128  # tokens of a generated text


class Writer(Adapter):
    """A model that writes: values are log-probabilities, as in the papers."""

    generates = True

    def next_target(self, encoding: Encoding, token: int, position: int | None = None) -> Target:
        place = len(encoding) if position is None else position
        return Target("token", (token,), (place,), self.codec.name(token), "log_prob")

    @abstractmethod
    def first_position(self, encoding: Encoding) -> int:
        """The first position that has something to be predicted from."""

    @abstractmethod
    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """Token ids of a text that could be written at a position."""

    def aimed_at(self, encoding: Encoding, target_spec: TargetSpec) -> list[tuple[Encoding, Target]]:
        """Targets within what is already written ("all", a number, a slice) or behind it (a text)."""
        first, size = self.first_position(encoding), len(encoding)
        if isinstance(target_spec.target, slice):
            return [self.span(encoding, target_spec, first)]
        if target_spec.target != "all" and target_spec.number is None:
            longer, target = self.continued(encoding, target_spec)
            return [(longer, self.finished(longer, target, target_spec))]
        if size <= first:
            raise InputError("The text has a single token, so nothing in it is predicted: give a longer text.")
        if target_spec.number is None:
            positions = list(range(first, size))
        else:
            positions = [target_spec.number if target_spec.number >= 0 else size + target_spec.number]
            if not first <= positions[0] < size:
                raise InputError(
                    f"Token {target_spec.number} can't be a target: tokens {first} to {size - 1} of this text follow "
                    "others."
                )
        targets = [self.next_target(encoding, int(encoding.ids[p]), p) for p in positions]
        return [(encoding, self.finished(encoding, target, target_spec)) for target in targets]

    def span(self, encoding: Encoding, target_spec: TargetSpec, first: int) -> tuple[Encoding, Target]:
        """Several tokens of the text as one target."""
        wanted = target_spec.target
        if not isinstance(wanted, slice):
            raise TypeError(f"not a range of tokens: {wanted!r}")
        positions = tuple(range(*wanted.indices(len(encoding))))
        if not positions or positions[0] < first or wanted.step not in (None, 1):
            raise InputError(
                f"Tokens {wanted.start}:{wanted.stop} can't be a target: name a range between "
                f"{first} and {len(encoding)}."
            )
        ids = tuple(int(encoding.ids[p]) for p in positions)
        kind = "token" if len(ids) == 1 else "text"
        return encoding, self.finished(
            encoding, Target(kind, ids, positions, self.codec.text(ids), "log_prob"), target_spec
        )

    def continued(self, encoding: Encoding, target_spec: TargetSpec) -> tuple[Encoding, Target]:
        """The text with a continuation behind it, and the continuation as target."""
        ids = self.ids_of(target_spec.target, encoding, len(encoding))
        if self.max_tokens is not None:
            surplus = len(streams_of(encoding)[-1]) + len(ids) - self.max_tokens
            if surplus > 0 and encoding.truncated and len(streams_of(encoding)) == 1:
                encoding = shortened(encoding, surplus)  # the text was cut already: make room
            self.fit(len(streams_of(encoding)[-1]) + len(ids), truncate=False)
        longer = extended(encoding, ids, self.codec)
        positions = range(len(encoding), len(encoding) + len(ids))
        kind = "token" if len(ids) == 1 else "text"
        return longer, Target(kind, tuple(ids), tuple(positions), self.codec.text(ids), "log_prob")

    def ids_of(self, wanted: Any, encoding: Encoding, position: int) -> list[int]:
        """Token ids of a target: a text that could stand at a position, or the ids themselves."""
        if isinstance(wanted, (list, tuple)) and wanted and all(isinstance(i, (int, np.integer)) for i in wanted):
            vocabulary = self.hf.config.vocab_size
            if not all(0 <= i < vocabulary for i in wanted):
                raise InputError(f"Token ids of {self.name} go from 0 to {vocabulary - 1}.")
            return [int(i) for i in wanted]
        if not str(wanted):
            raise InputError("The target is empty: name a word or text that could follow.")
        ids = self.pieces_of(encoding, position, str(wanted))
        unknown = self.codec.own.unk_token_id
        if unknown in ids and str(wanted) != self.codec.own.unk_token and unknown not in (self.codec.own.eos_token_id,):
            raise InputError(
                f"{str(wanted)!r} is not in the vocabulary of {self.name}: name a word that it could write."
            )
        return ids

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that tokens spell."""
        return self.codec.text(ids)

    def finished(self, encoding: Encoding, target: Target, target_spec: TargetSpec) -> Target:
        """The target with the wished output and contrast."""
        changes: dict[str, Any] = {"output": target_spec.output or target.output}
        if target_spec.contrast is not None:
            ids = self.ids_of(target_spec.contrast, encoding, target.positions[0])
            ids = ids[:1] if len(target.ids) == 1 else ids  # one token is contrasted with the start of the other
            if tuple(ids) == target.ids:
                raise InputError(f"The target and the contrast are both {target.text!r}: name two outcomes.")
            changes |= {"contrast": tuple(ids), "contrast_text": self.codec.text(ids)}
        return replace(target, **changes)

    @abstractmethod
    def started(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        """What `generate` begins with."""

    def write(self, encoding: Encoding, longest: int | None = None) -> list[int]:
        """The tokens that the model writes, greedily and without its end; `longest`: by default its own setting."""
        inputs = self.started(encoding)
        settings = copy.deepcopy(self.view.generation_config)
        longest = longest or settings.max_new_tokens or LONGEST
        begun = len(streams_of(encoding)[-1])
        left = (self.max_tokens or begun + longest) - begun
        if left < 1:
            raise TooLong(
                f"The text fills all {self.max_tokens} tokens that {self.name} can read: nothing can be written."
            )
        settings.update(max_length=None, max_new_tokens=min(longest, left), num_beams=1, do_sample=False)
        with torch.inference_mode(), running(Call()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings for sampling, which is switched off
            written = self.view.generate(**inputs, generation_config=settings, stopping_criteria=[go_on])
        ids = [int(i) for i in written[0][begun:]]
        end = self.view.generation_config.eos_token_id
        ends = set(end) if isinstance(end, (list, tuple)) else {end}
        stop = next((k for k, i in enumerate(ids) if i in ends), len(ids))
        if not ids:
            raise InputError(f"{self.name} writes nothing for this text: give another text, or a target.")
        return ids[: max(1, stop)]

    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        guesses = [self.next_target(encoding, 0) for encoding in encodings]
        answers = []
        for encoding, logits in zip(encodings, self.logits(encodings, guesses), strict=True):
            probability = logits[0].softmax(-1)
            best = probability.topk(5)
            top = tuple((self.codec.name(int(i)), float(p)) for p, i in zip(best.values, best.indices, strict=True))
            token = int(best.indices[0])
            outcomes = tuple((int(i),) for i in best.indices)
            answers.append(Prediction(self.next_target(encoding, token), float(best.values[0]), top, outcomes))
        return answers

    def columns(self, output: Any, chunk: Chunk) -> Columns:
        return vocabulary_columns(self, output.logits, chunk)


def go_on(ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
    """Asked after each token that is written: no row is done, but who waits for it may end it."""
    progress.check()
    return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)


def vocabulary_columns(model: Adapter, logits: torch.Tensor, chunk: Chunk) -> Columns:
    """Columns of token targets: the vocabulary at each row they are read from."""
    put = lambda values: torch.from_numpy(chunk.spread(values)).to(logits.device)  # noqa: E731
    if not chunk.picked:
        rows = model.rows_of(chunk).to(logits.device)  # type: ignore[union-attr]
        logits = logits.gather(1, rows[..., None].expand(-1, -1, logits.shape[-1]))
    ids = put([np.array(part.target.ids) for part in chunk.parts])  # type: ignore[union-attr]
    rivals = [part.target.contrast for part in chunk.parts]  # type: ignore[union-attr]
    if all(rival is None for rival in rivals):
        return Columns(logits, ids)
    return Columns(logits, ids, put([np.array(rival) for rival in rivals]))


def shortened(encoding: Encoding, surplus: int) -> Encoding:
    """The encoding without its first ordinary tokens."""
    kept = np.setdiff1d(np.arange(len(encoding)), np.flatnonzero(~encoding.fixed)[:surplus])
    return replace(
        encoding,
        ids=encoding.ids[kept],
        tokens=tuple(encoding.tokens[t] for t in kept),
        segment=encoding.segment[kept],
        start=encoding.start[kept],
        end=encoding.end[kept],
        fixed=encoding.fixed[kept],
        types=None if encoding.types is None else encoding.types[kept],
        positions=np.arange(len(kept)),
        truncated=encoding.truncated + surplus,
    )


def extended(encoding: Encoding, ids: list[int], codec: Any) -> Encoding:
    """The encoding with tokens of a continuation at its end, as a segment of their own."""
    segment = encoding.segments.index("continuation") if "continuation" in encoding.segments else len(encoding.segments)
    text, starts, ends = spread(ids, codec)
    data = encoding.to_dict()
    count = len(ids)
    last = int(encoding.positions[-1])
    data |= {
        "ids": [*data["ids"], *ids],
        "tokens": [*data["tokens"], *(codec.name(i) for i in ids)],
        "segments": [*data["segments"], "continuation"],
        "texts": [*data["texts"], text],
        "segment": [*data["segment"], *[segment] * count],
        "start": [*data["start"], *starts],
        "end": [*data["end"], *ends],
        "positions": [*data["positions"], *range(last + 1, last + 1 + count)],
        "fixed": [*data["fixed"], *[False] * count],
        "types": None if data["types"] is None else [*data["types"], *[0] * count],
    }
    return Encoding.from_dict(data)


def spread(ids: list[int], codec: Any) -> tuple[str, list[int], list[int]]:
    """Written text and where each of its tokens begins and ends in it.

    Ends are the lengths of growing prefixes. The bytes of an unfinished character read as a replacement sign,
    so lengths may not run ahead of the text nor back; a token that adds nothing belongs to the character before.
    """
    text = codec.text(ids)
    lengths = [min(len(codec.text(ids[: k + 1])), len(text)) for k in range(len(ids))]
    ends = [max(lengths[: k + 1]) for k in range(len(ids))]
    ends = [max(end, min(1, len(text))) for end in ends]
    starts = [min(a, b - 1) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return text, starts, ends
