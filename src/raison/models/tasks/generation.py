"""What decoders and encoder-decoders share: targets that are written text, read one row earlier."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from raison.core.errors import InputError
from raison.core.records import Encoding, Target
from raison.models.protocol import Prediction, TargetSpec, whole_number
from raison.models.runner.answers import Columns
from raison.models.runner.batching import Chunk, streams_of_batch_piece
from raison.models.runner.generate import generate
from raison.models.runner.output_format import Output
from raison.models.runner.runner import Runner, install_shortcut_in_view
from raison.models.tasks.base import Task, columns_at_rows, outcomes_of_texts
from raison.models.tasks.continuation import extended_encoding, shortened_encoding

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["GenerationTask"]

BEST = 5  # tokens that a prediction shows


class GenerationTask(Task):
    """A model that writes: values are log-probabilities, as in the papers."""

    generates = True

    # -- the model --------------------------------------------------------------------------------------

    def prepare_view(self, view: PreTrainedModel) -> None:
        install_shortcut_in_view(view)

    def columns(self, output: Output, chunk: Chunk) -> Columns:
        if chunk.asked is None:
            raise ValueError("a model that writes is asked about tokens")
        return columns_at_rows(output.logits, chunk.asked, picked=chunk.picked)

    @abstractmethod
    def generation_inputs(self, encoding: Encoding) -> dict[str, torch.Tensor]:
        """What the model begins to write behind."""

    def write(self, runner: Runner, encoding: Encoding, longest: int | None = None) -> list[int]:
        """The tokens that the model writes, greedily and without its end; `longest`: by default its own setting."""
        begun = len(streams_of_batch_piece(encoding)[-1])
        return generate(runner, self.generation_inputs(encoding), begun, longest)

    def predict(self, runner: Runner, encodings: Sequence[Encoding]) -> list[Prediction]:
        # any token: its target says which row is read
        targets = [self.next_target(encoding, 0) for encoding in encodings]
        outcomes = outcomes_of_texts(runner, encodings, targets)
        predictions = []
        for encoding, logits in zip(encodings, outcomes, strict=True):
            predictions.append(self.prediction_from(encoding, logits[0]))
        return predictions

    def prediction_from(self, encoding: Encoding, logits: torch.Tensor) -> Prediction:
        """The likeliest next token by the logits of all [v]."""
        best = logits.softmax(-1).topk(BEST)
        tokens = best.indices.tolist()
        probabilities = best.values.tolist()
        names = [self.loaded.codec.name(token) for token in tokens]
        return Prediction(
            target=self.next_target(encoding, tokens[0]),
            value=probabilities[0],
            top=tuple(zip(names, probabilities, strict=True)),
            outcomes=tuple((token,) for token in tokens),
        )

    # -- tokens -----------------------------------------------------------------------------------------

    @abstractmethod
    def first_position(self, encoding: Encoding) -> int:
        """The first position that has something to be predicted from."""

    @abstractmethod
    def pieces_of(self, encoding: Encoding, position: int, text: str) -> list[int]:
        """Token ids of a text that could be written at a position."""

    def ids_of(self, wanted: object, encoding: Encoding, position: int) -> list[int]:
        """Token ids of a target: a text that could stand at a position, or the ids themselves."""
        ids = target_ids_among(wanted)
        if ids:
            self.check_ids(ids)
            return ids
        text = str(wanted)
        if not text:
            raise InputError("The target is empty: name a word or text that could follow.")
        ids = self.pieces_of(encoding, position, text)
        tokenizer = self.loaded.codec.own
        unknown = tokenizer.unk_token_id
        if unknown in ids and text != tokenizer.unk_token and unknown != tokenizer.eos_token_id:
            raise InputError(
                f"{text!r} is not in the vocabulary of {self.loaded.name}: name a word that it could write."
            )
        return ids

    def check_ids(self, ids: Sequence[int]) -> None:
        """Refuse ids that no token has."""
        vocabulary = self.loaded.setting("vocab_size")
        if not all(0 <= token < vocabulary for token in ids):
            raise InputError(f"Token ids of {self.loaded.name} go from 0 to {vocabulary - 1}.")

    def text_of(self, ids: Sequence[int]) -> str:
        """The text that tokens spell."""
        return self.loaded.codec.text(ids)

    # -- targets ----------------------------------------------------------------------------------------

    def next_target(self, encoding: Encoding, token: int, position: int | None = None) -> Target:
        """One token as a target: behind the encoding, or at a position of it."""
        place = len(encoding) if position is None else position
        name = self.loaded.codec.name(token)
        return Target(kind="token", ids=(token,), positions=(place,), text=name, output="log_prob")

    def text_target(self, ids: Sequence[int], positions: Sequence[int]) -> Target:
        """Tokens at some positions as one target."""
        return Target(
            kind="token" if len(ids) == 1 else "text",
            ids=tuple(ids),
            positions=tuple(positions),
            text=self.text_of(ids),
            output="log_prob",
        )

    def written_target(self, encoding: Encoding, positions: Sequence[int]) -> Target:
        """Tokens that stand in the text as one target."""
        return self.text_target([int(encoding.ids[place]) for place in positions], positions)

    def targets_in_text(
        self, encoding: Encoding, target_spec: TargetSpec
    ) -> list[tuple[Encoding, Target]]:
        """Targets within what is already written ("all", a number, a slice) or behind it (a text)."""
        wanted = target_spec.target
        if isinstance(wanted, slice):
            positions = self.positions_in_slice(encoding, wanted)
            written = self.written_target(encoding, positions)
            return [(encoding, self.finished(encoding, written, target_spec))]
        if wanted != "all" and target_spec.number is None:
            longer, target = self.continued(encoding, wanted)
            return [(longer, self.finished(longer, target, target_spec))]

        targets = []
        for place in self.single_positions(encoding, target_spec.number):
            target = self.next_target(encoding, int(encoding.ids[place]), place)
            targets.append((encoding, self.finished(encoding, target, target_spec)))
        return targets

    def single_positions(self, encoding: Encoding, number: int | None) -> list[int]:
        """The position of one token by its number, which may count from the end; of all of them where it is None."""
        first, size = self.first_position(encoding), len(encoding)
        if size <= first:
            raise InputError(
                "The text has a single token, so nothing in it is predicted: give a longer text."
            )
        if number is None:
            return list(range(first, size))
        position = number if number >= 0 else size + number
        if not first <= position < size:
            raise InputError(
                f"Token {number} can't be a target: tokens {first} to {size - 1} of this text follow others."
            )
        return [position]

    def positions_in_slice(self, encoding: Encoding, wanted: slice) -> list[int]:
        """The positions of several tokens in a row."""
        first = self.first_position(encoding)
        positions = list(range(*wanted.indices(len(encoding))))
        if not positions or positions[0] < first or wanted.step not in (None, 1):
            raise InputError(
                f"Tokens {wanted.start}:{wanted.stop} can't be a target: name a range between "
                f"{first} and {len(encoding)}."
            )
        return positions

    def continued(self, encoding: Encoding, wanted: object) -> tuple[Encoding, Target]:
        """The text with a continuation behind it, and the continuation as target."""
        ids = self.ids_of(wanted, encoding, len(encoding))
        limit = self.loaded.max_tokens
        if limit is not None:
            streams = streams_of_batch_piece(encoding)
            surplus = len(streams[-1]) + len(ids) - limit
            if surplus > 0 and encoding.truncated and len(streams) == 1:
                encoding = shortened_encoding(
                    encoding, surplus
                )  # the text was cut already: make room
            written = streams_of_batch_piece(encoding)[-1]
            self.loaded.surplus(len(written) + len(ids), truncate=False)
        longer = extended_encoding(encoding, ids, self.loaded.codec)
        return longer, self.text_target(ids, range(len(encoding), len(longer)))

    def finished(self, encoding: Encoding, target: Target, target_spec: TargetSpec) -> Target:
        """The target with the output and the contrast that are asked for."""
        target = replace(target, output=target_spec.output or target.output)
        if target_spec.contrast is None:
            return target
        ids = self.ids_of(target_spec.contrast, encoding, target.positions[0])
        if len(target.ids) == 1:
            ids = ids[:1]  # one token is contrasted with the start of the other
        if tuple(ids) == target.ids:
            raise InputError(
                f"The target and the contrast are both {target.text!r}: name two outcomes."
            )
        return replace(target, contrast=tuple(ids), contrast_text=self.text_of(ids))


def target_ids_among(wanted: object) -> list[int]:
    """The ids of a target that is given as such; empty where it is something else."""
    if not isinstance(wanted, (list, tuple)):
        return []
    numbers = [whole_number(each) for each in wanted]
    ids = [number for number in numbers if number is not None]
    return ids if len(ids) == len(numbers) else []
