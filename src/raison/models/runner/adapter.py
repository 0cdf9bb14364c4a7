"""What all transformers models share: running a view on batches, reading answers, recording traces.

A task is a subclass that says three things: how its texts become an axis (`encode`), what a target_spec means
(`aim`), and where in the output its outcomes stand (`columns`). Everything else is here, once.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from raison.core import progress
from raison.core.errors import InputError, TooLong, Unsupported
from raison.core.records import Encoding, Example, Target
from raison.core.registry import suggest
from raison.models.attention.call import Call, running
from raison.models.attention.view import view_of
from raison.models.attention.view_fingerprint import view_fingerprint
from raison.models.codec import Codec
from raison.models.families import Family
from raison.models.prefix.score import answer
from raison.models.protocol import PREDICTED, REMOVALS, Budget, Prediction, Question, Scored, TargetSpec, Trace
from raison.models.runner import meter, pass_cache
from raison.models.runner.answers import Columns, read
from raison.models.runner.batching import Chunk, Piece, chunks, pieces
from raison.models.runner.score_cache import Memory
from raison.models.runner.split_forward import install_tail
from raison.models.runner.view_settings import Settings, settle

__all__ = ["Adapter"]

STRIDE = 16  # tokens: targets at different places of a text run together when their lengths are multiples of this


@torch.inference_mode(False)
@torch.enable_grad()
def differentiable(traces: Iterator[tuple[int, Trace]]) -> Iterator[tuple[int, Trace]]:
    """The traces, made with gradients even where the caller has switched them off for itself."""
    yield from traces


class Adapter(ABC):
    """A transformers model of one task, seen through a view."""

    task: str
    generates = False  # the output is a vocabulary at every row
    problem = ""  # what a classifier decides
    paddings: tuple[str, ...] = ("exact", "right", "left")  # layouts in which the head reads the right row

    def __init__(self, hf: Any, tokenizer: Any, family: Family, name: str, budget: Budget | None = None):
        self.hf = hf  # the user's model: read, never changed
        self.tokenizer = tokenizer  # the user's tokenizer: never called, see Codec
        self.family = family
        self.name = name
        self.budget = budget or Budget()
        self.codec = Codec(tokenizer)
        self.offers: frozenset[str] = frozenset({"score"})
        self.removals: tuple[str, ...] = ()
        self.head_statistics: str | None = None  # a file of head statistics that comes with the model (offer "heads")
        self.shares_prefixes = False  # prefixes can be shared between questions: packed = literal
        self.bypasses_tap = False  # attention maps come from a function mode
        self.switches_heads = False  # heads can be switched off: it changes what it would change in the plain model
        self.restless = False  # a pass changes the model's settings, which are put back: one pass at a time
        self._lock = threading.Lock()
        self._view: tuple[tuple, Any] | None = None
        self.settings: Settings  # of the view, to which every pass returns it
        self._accepts = frozenset(inspect.signature(hf.forward).parameters)

    # -- the view ---------------------------------------------------------------------------------

    @property
    def view(self) -> Any:
        """The view of the model's present weights; made anew when they have moved."""
        mark = view_fingerprint(self.hf)
        found = self._view
        if found is None or found[0] != mark:
            with self._lock:
                if self._view is None or self._view[0] != mark:
                    view = self.prepare(view_of(self.hf, self.family.prepare))
                    self.settings = settle(view, one_at_a_time=self.restless)
                    self._view = (mark, view)
                found = self._view
        return found[1]

    def forget_view(self) -> None:
        """Let the next call make a view anew."""
        self._view = None

    @property
    def map_source(self) -> str:
        """What a call records to see attention maps."""
        return "softmaxes" if self.bypasses_tap else "attention"

    def prepare(self, view: Any) -> Any:
        """A last word of the task on a fresh view."""
        if self.generates:
            install_tail(view)
        return view

    @property
    def device(self) -> torch.device:
        return next(self.hf.parameters()).device

    @property
    def tables(self) -> list[Any]:
        """The word table of each stream, as a module: what it returns for an id is the embedding that a trace shows."""
        view = self.view
        apart = getattr(view.config, "is_encoder_decoder", False)
        parts = [view.get_encoder(), view.get_decoder()] if apart else [view]
        return [part.get_input_embeddings() for part in parts]

    @property
    def max_tokens(self) -> int | None:
        """The longest input in tokens, where the architecture has a limit."""
        config = self.hf.config.get_text_config() if hasattr(self.hf.config, "get_text_config") else self.hf.config
        if self.family.positions == "relative":
            size = getattr(self.tokenizer, "model_max_length", None)
            return int(size) if size is not None and size < 10**6 else None
        for name in ("max_position_embeddings", "n_positions"):
            size = getattr(config, name, None)
            if isinstance(size, int) and size > 0:
                return size - self.family.offset(config)
        return None

    @property
    def rounding(self) -> float:
        """Log-probabilities that are closer than this are equal: the model's dtype can't tell them apart."""
        return {torch.float64: 1e-9, torch.float32: 1e-5}.get(next(self.hf.parameters()).dtype, 1e-2)

    @property
    def probable(self) -> bool:
        """Outcomes have probabilities."""
        return True

    # -- what a task says ---------------------------------------------------------------------------

    @abstractmethod
    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        """The axis of one example."""

    @abstractmethod
    def resolve_targets(self, encoding: Encoding, target_spec: TargetSpec = PREDICTED) -> list[tuple[Encoding, Target]]:
        """The targets that are asked for, each with the encoding it belongs to."""

    def said(self, encoding: Encoding, target_spec: TargetSpec) -> Target:
        """What the model predicts, asked only if it has not been."""
        return (target_spec.prediction or self.predict([encoding])[0]).target

    @abstractmethod
    def predict(self, encodings: Sequence[Encoding]) -> list[Prediction]:
        """What the model says about each whole text."""

    @abstractmethod
    def columns(self, output: Any, chunk: Chunk) -> Columns:
        """Where the outcomes of the chunk's targets stand in the model's output."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the classes, for models that have some."""
        names = self.hf.config.id2label
        return tuple(str(names[i]) for i in sorted(names))

    # -- encode -------------------------------------------------------------------------------------

    def encode(self, examples: Sequence[Example], *, truncate: bool = False) -> list[Encoding]:
        encodings = [self.encode_one(example, truncate=truncate) for example in examples]
        for encoding in encodings:
            if len(encoding) == 0:
                raise InputError("The tokenizer makes no tokens of this text: give some words.")
        return encodings

    def fit(self, size: int, truncate: bool) -> int:
        """How many tokens must go, or `TooLong`."""
        limit = self.max_tokens
        if limit is None or size <= limit:
            return 0
        if not truncate:
            raise TooLong(
                f"The text has {size} tokens, but {self.name} reads at most {limit}: shorten it, "
                "or pass truncate=True (--truncate) to cut it and have that recorded."
            )
        return size - limit

    # -- running ------------------------------------------------------------------------------------

    def tensors(self, chunk: Chunk, removal: str | None) -> tuple[dict[str, Any], Call]:
        """Arguments of the view's forward for a chunk, and the call that goes with them."""
        device = self.device
        put = lambda a: torch.from_numpy(np.ascontiguousarray(a)).to(device)  # noqa: E731
        inputs: dict[str, Any] = {}
        positions, present = [], []
        for stream in range(len(chunk.lengths)):
            ids = [part.encoding.ids[part.index[stream]] for part in chunk.parts]
            shown = [part.visible[stream] for part in chunk.parts]
            if removal in ("mask_token", "pad_token"):
                absent = self.codec.mask_id if removal == "mask_token" else self.codec.pad_id
                ids = [np.where(v, i, absent) for i, v in zip(ids, shown, strict=True)]
            attend = shown if removal in ("delete", "mask") else [np.ones_like(v) for v in shown]
            places = [part.encoding.positions[part.index[stream]] for part in chunk.parts]
            filled = [
                chunk.fill(stream, ids, self.codec.pad_id),
                chunk.fill(stream, attend, False),
                chunk.fill(stream, places, 0),
                chunk.fill(stream, shown, True),
            ]
            if chunk.lengths[stream] == 0:  # nothing kept: one token that nobody may see
                filled = [np.full((chunk.rows, 1), v) for v in (self.codec.pad_id, False, 0, True)]
            names = self.argument_names(stream)
            inputs[names[0]] = put(filled[0])
            inputs[names[1]] = put(filled[1]).long()
            positions.append(put(filled[2]))
            present.append(put(filled[3]) if removal == "zero" else None)
        if self.family.positions == "argument" and "position_ids" in self._accepts:
            inputs["position_ids"] = positions[0] + self.family.offset(self.hf.config)
        if chunk.parts[0].encoding.types is not None and "token_type_ids" in self._accepts:
            types = [part.encoding.types[part.index[0]] for part in chunk.parts]  # type: ignore[index]
            inputs["token_type_ids"] = put(chunk.fill(0, types, 0))
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False
        meter.count(chunk.rows, tokens=chunk.tokens)  # whatever is built is run
        known = positions if self.family.positions != "none" else None
        return inputs, Call(positions=known, present=present if removal == "zero" else None)

    @property
    def layout(self) -> Budget:
        """The budget, if its padding suits the head."""
        if self.budget.padding not in self.paddings:
            raise Unsupported(
                f"{self.name} can't run with {self.budget.padding!r} padding: use one of {', '.join(self.paddings)}."
            )
        return self.budget

    def argument_names(self, stream: int) -> tuple[str, str]:
        """Names of ids and mask of a stream in the model's forward."""
        return "input_ids", "attention_mask"

    def row_bytes(self, lengths: tuple[int, ...], columns: int) -> int:
        """Rough memory of one row in one layer, and of its answers."""
        config = self.hf.config
        heads = getattr(config, "num_attention_heads", None) or getattr(config, "encoder_attention_heads", 12) or 12
        vocabulary = config.vocab_size if self.generates else 0
        return 12 * heads * max(lengths, default=1) ** 2 + 12 * max(columns, 1) * vocabulary

    def rows_of(self, chunk: Chunk) -> torch.Tensor | None:
        """[b m] columns from which token targets are read; None where the output has no rows to choose."""
        if chunk.parts[0].target is None or not chunk.parts[0].target.rows.size:
            return None
        last = len(chunk.lengths) - 1
        local = [chunk.local(part, part.target.rows, last) for part in chunk.parts]  # type: ignore[union-attr]
        return torch.from_numpy(np.concatenate(local)).to(self.device)

    def narrow(self, chunk: Chunk, call: Call) -> None:
        """Let the LM head compute only the rows that the chunk's targets are read from."""
        if self.generates:
            call.rows, chunk.picked = self.rows_of(chunk), True

    # -- score --------------------------------------------------------------------------------------

    def score(
        self,
        questions: Sequence[Question],
        *,
        removal: str | None = None,
        heads: np.ndarray | None = None,
        memory: Memory | None = None,
    ) -> list[Scored]:
        removal = self.removal_named(removal)
        self.check_heads(heads)
        memory = Memory(limit=0, room=0) if memory is None else memory
        recalls = [memory.recall(question, removal, heads) for question in questions]
        unknown = [recall.question for recall in recalls]
        if self.shares_prefixes and removal == "delete" and heads is None and memory.room:
            results = answer(self, unknown, memory.trie(self.view), memory.room)
        else:
            results = self.run(unknown, removal, heads)
        answers = [recall.complete(result) for recall, result in zip(recalls, results, strict=True)]
        for recall, result in zip(recalls, results, strict=True):
            memory.store(recall, result)
        return answers

    def run(self, questions: Sequence[Question], removal: str, heads: np.ndarray | None) -> list[Scored]:
        """Evaluate every row of every question, in batches of equal length."""
        results = [self.blank(question) for question in questions]
        plan = [
            piece
            for number, q in enumerate(questions)
            for piece in pieces(number, q.encoding, q.target, q.keep, removal == "delete", STRIDE)
        ]
        total = sum(len(piece) * sum(piece.lengths) for piece in plan)
        done, view = 0, self.view  # looked at once: whether the weights have moved takes milliseconds to see
        for chunk in chunks(plan, self.layout, self.row_bytes):
            inputs, call = self.tensors(chunk, removal)
            self.narrow(chunk, call)
            call.heads = None if heads is None else torch.from_numpy(np.asarray(heads, dtype=np.float64))
            with torch.inference_mode(), running(call):
                columns = self.columns(view(**inputs), chunk)
                answers = read(columns, self.outputs_of(chunk))
            row = 0
            for part in chunk.parts:
                result = results[part.owner]
                for name, values in answers.items():
                    getattr(result, name)[part.which] = values[row : row + len(part)]
                result.forwards += len(part)
                result.tokens += len(part) * sum(part.lengths)
                row += len(part)
            done += chunk.tokens
            progress.report(done, total)
        return results

    @staticmethod
    def blank(question: Question) -> Scored:
        shape = (len(question.keep), len(question.target.ids))
        return Scored(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int64))

    def outputs_of(self, chunk: Chunk) -> list[str]:
        """What `value` means in each row of a chunk."""
        return [part.target.output for part in chunk.parts for _ in range(len(part))]  # type: ignore[union-attr]

    def removal_named(self, removal: str | None) -> str:
        """The removal to use: the model's default, or the one that is asked for if the model can do it."""
        if removal is None:
            return self.removals[0]
        if removal not in REMOVALS:
            raise InputError(
                f"There is no removal called {removal!r}.{suggest(str(removal), list(REMOVALS))} "
                f"Use one of {', '.join(REMOVALS)}."
            )
        if removal not in self.removals:
            raise Unsupported(f"{self.name} can't remove tokens by {removal!r}: use one of {', '.join(self.removals)}.")
        return removal

    def check_heads(self, heads: np.ndarray | None) -> None:
        """Refuse to switch heads off where attention is a function of the family's own, which nobody reaches."""
        if heads is not None and not self.switches_heads:
            raise Unsupported(f"The heads of {self.name} can be looked at, but not switched off: choose another model.")

    # -- trace --------------------------------------------------------------------------------------

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[torch.Tensor] | None = None,
        heads: np.ndarray | None = None,
        rules: Any = None,
    ) -> Iterator[tuple[int, Trace]]:
        from raison.models.attention.value_zeroing import zeroed
        from raison.models.relevance.passes import relate, rescale
        from raison.models.runner.trace import record

        self.check_heads(heads)
        if heads is not None and ("zeroed" in want or (rules is not None and rules.paired)):
            raise Unsupported("This method can't be asked about a model without some heads: choose another.")
        if "zeroed" in want:
            return differentiable(zeroed(self, encodings, targets))
        if rules is not None and rules.paired and self.budget.rows is not None:
            raise Unsupported(f"{self.name} answers otherwise in a batch, and this method needs one: choose another.")
        if rules is not None and rules.paired:
            return differentiable(rescale(self, encodings, targets, rules, embeddings or ()))
        if rules is not None:
            return differentiable(relate(self, encodings, targets, want, rules, embeddings, heads))
        return differentiable(record(self, encodings, targets, want, embeddings, heads))

    def hidden_of(self, output: Any) -> list[list[torch.Tensor]]:
        """Per stream the hidden states [b t d], from the first block's input to the last output."""
        return [list(output.hidden_states)]

    # -- plain answers ------------------------------------------------------------------------------

    def logits(self, encodings: Sequence[Encoding], targets: Sequence[Target | None]) -> list[torch.Tensor]:
        """[m v] outcomes of each whole text, for predictions."""
        results: list[torch.Tensor] = [torch.empty(0)] * len(encodings)
        plan = [
            piece
            for number, (encoding, target) in enumerate(zip(encodings, targets, strict=True))
            for piece in pieces(number, encoding, target, np.ones((1, len(encoding)), bool), False)
        ]
        for chunk, columns in self.told(plan):
            found = columns.logits.detach()
            for row, part in enumerate(chunk.parts):
                start = chunk.offset(part, len(chunk.lengths) - 1)
                results[part.owner] = self.unpadded(found[row], slice(start, start + part.lengths[-1])).cpu().double()
        return results

    @torch.inference_mode(False)
    @torch.enable_grad()
    def told(self, plan: list[Piece]) -> Iterator[tuple[Chunk, Columns]]:
        """What forward passes of whole texts tell; they are kept where a trace will want the same ones."""
        from raison.models.runner.trace import row_bytes, watched

        keeper, view = pass_cache.current(), self.view
        cost = self.row_bytes if keeper is None else row_bytes(self, keeper.want)
        for chunk in chunks(plan, self.layout, cost):
            inputs, call = self.tensors(chunk, "mask")
            self.narrow(chunk, call)
            call.view = view
            size = chunk.rows * cost(chunk.lengths, 1)
            if keeper is not None and keeper.room(chunk, size, self.budget):
                keeper.keep(run := watched(self, chunk, inputs, call, keeper.want), size)
                yield chunk, self.columns(run.output, chunk)
            else:
                with torch.inference_mode(), running(call):
                    columns = self.columns(view(**inputs), chunk)
                yield chunk, columns

    def unpadded(self, logits: torch.Tensor, real: slice) -> torch.Tensor:
        """The outcomes [m v] of one whole text without those that padding would have."""
        return logits
