"""What all transformers models share: running a view on batches, reading answers, recording traces.

A task is a subclass that says three things: how its texts become an axis (`encode`), what a wish means
(`aim`), and where in the output its outcomes stand (`columns`). Everything else is here, once.
"""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from raison import progress
from raison.errors import InputError, TooLong, Unsupported
from raison.models.base import REMOVALS, Budget, Map, Prediction, Question, Scored, Trace
from raison.models.codec import Codec
from raison.models.families import Family
from raison.models.layout import Chunk, Piece, chunks, pieces
from raison.models.tap import Call, SoftmaxRecorder, fingerprint, running, view_of
from raison.registry import suggest
from raison.types import Encoding, Example, Target

__all__ = ["Adapter", "Columns"]


@dataclass
class Columns:
    """The outcomes among which each column of a target is decided."""

    logits: torch.Tensor  # [b m v]
    ids: torch.Tensor  # [b m] the target's outcome
    contrast: torch.Tensor | None = None  # [b m] the outcome it is compared with


class Adapter(ABC):
    """A transformers model of one task, seen through a view."""

    task: str
    generates = False  # the output is a vocabulary at every row

    def __init__(self, hf: Any, tokenizer: Any, family: Family, name: str, budget: Budget | None = None):
        self.hf = hf  # the user's model: read, never changed
        self.tokenizer = tokenizer  # the user's tokenizer: never called, see Codec
        self.family = family
        self.name = name
        self.budget = budget or Budget()
        self.codec = Codec(tokenizer)
        self.offers: frozenset[str] = frozenset({"score"})
        self.removals: tuple[str, ...] = ()
        self.bypasses_tap = False  # attention maps come from a function mode
        self._lock = threading.Lock()
        self._view: tuple[tuple, Any] | None = None
        self._accepts = frozenset(inspect.signature(hf.forward).parameters)

    # -- the view ---------------------------------------------------------------------------------

    @property
    def view(self) -> Any:
        """The view of the model's present weights; made anew when they have moved."""
        mark = fingerprint(self.hf)
        found = self._view
        if found is None or found[0] != mark:
            with self._lock:
                if self._view is None or self._view[0] != mark:
                    self._view = (mark, self.prepare(view_of(self.hf, self.family.prepare)))
                found = self._view
        return found[1]

    def prepare(self, view: Any) -> Any:
        """A last word of the task on a fresh view."""
        return view

    @property
    def device(self) -> torch.device:
        return next(self.hf.parameters()).device

    @property
    def limit(self) -> int | None:
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

    # -- what a task says ---------------------------------------------------------------------------

    @abstractmethod
    def encode_one(self, example: Example, *, truncate: bool) -> Encoding:
        """The axis of one example."""

    @abstractmethod
    def aim(
        self, encoding: Encoding, wish: Any = None, *, contrast: Any = None, output: str | None = None
    ) -> list[tuple[Encoding, Target]]:
        """What a user's wish means for this text."""

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
        limit = self.limit
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
        known = positions if self.family.positions != "none" else None
        return inputs, Call(positions=known, present=present if removal == "zero" else None)

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
        memory: Any = None,
    ) -> list[Scored]:
        removal = self.removal_named(removal)
        results = [self.blank(question) for question in questions]
        plan = [
            piece
            for number, q in enumerate(questions)
            for piece in pieces(number, q.encoding, q.target, np.atleast_2d(q.keep), removal == "delete")
        ]
        total = sum(len(piece) * sum(piece.lengths) for piece in plan)
        done = 0
        for chunk in chunks(plan, self.budget, self.row_bytes):
            inputs, call = self.tensors(chunk, removal)
            self.narrow(chunk, call)
            call.heads = None if heads is None else torch.from_numpy(np.asarray(heads, dtype=np.float64))
            with torch.inference_mode(), running(call):
                columns = self.columns(self.view(**inputs), chunk)
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
        shape = (np.atleast_2d(question.keep).shape[0], len(question.target.ids))
        return Scored(np.zeros(shape), np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int64))

    def outputs_of(self, chunk: Chunk) -> list[str]:
        """What `value` means in each row of a chunk."""
        return [part.target.output for part in chunk.parts for _ in range(len(part))]  # type: ignore[union-attr]

    def removal_named(self, removal: str | None) -> str:
        """The removal to use: the model's default, or the wish if the model can do it."""
        if removal is None:
            return self.removals[0]
        if removal not in REMOVALS:
            raise InputError(
                f"There is no removal called {removal!r}.{suggest(removal, list(REMOVALS))} Use one of {', '.join(REMOVALS)}."
            )
        if removal not in self.removals:
            raise Unsupported(
                f"{self.name} can't remove tokens by {removal!r}: use one of {', '.join(self.removals)}."
            )
        return removal

    # -- trace --------------------------------------------------------------------------------------

    def trace(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        *,
        want: frozenset[str],
        embeddings: Sequence[torch.Tensor] | None = None,
        heads: np.ndarray | None = None,
    ) -> Iterator[tuple[int, Trace]]:
        """Yield (index, trace); targets that share an encoding share its forward pass.

        want: of {"gradients", "attention", "attention_gradients", "hidden", "hidden_gradients", "readout"}.
        """
        members: dict[int, list[int]] = {}
        for number, encoding in enumerate(encodings):
            # replaced embeddings make even equal texts different
            members.setdefault(number if embeddings is not None else id(encoding), []).append(number)
        groups = list(members.values())
        plan = []
        for number, group in enumerate(groups):
            encoding = encodings[group[0]]
            # the target that sees most decides how much of the text runs
            widest = max((targets[i] for i in group), key=lambda t: max(t.positions, default=0))
            plan += pieces(number, encoding, widest, np.ones((1, len(encoding)), bool), False)
        record = {"embeddings"} | ({"attention"} if want & {"attention", "attention_gradients"} else set())
        for chunk in chunks(plan, self.budget, self.trace_bytes(want)):
            inputs, call = self.tensors(chunk, "mask")
            call.record = frozenset(record)
            call.heads = None if heads is None else torch.from_numpy(np.asarray(heads, dtype=np.float64))
            if embeddings is not None:
                call.replace = self.stacked(chunk, groups, embeddings)
            yield from self.traced(chunk, inputs, call, groups, targets, want)

    def traced(
        self,
        chunk: Chunk,
        inputs: dict[str, Any],
        call: Call,
        groups: list[list[int]],
        targets: Sequence[Target],
        want: frozenset[str],
    ) -> Iterator[tuple[int, Trace]]:
        """One forward pass and as many backward passes as the text with most targets needs."""
        if want & {"hidden", "hidden_gradients", "readout"}:
            inputs = {**inputs, "output_hidden_states": True}
        rounds = max(len(groups[part.owner]) for part in chunk.parts)
        if rounds == 1:
            self.narrow(chunk, call)
        with torch.enable_grad(), running(call):
            if self.bypasses_tap and "attention" in call.record:
                with SoftmaxRecorder(call):
                    output = self.view(**inputs)
            else:
                output = self.view(**inputs)
        hidden = self.hidden_of(output) if "output_hidden_states" in inputs else []
        wanted = [("gradient", call.leaves)] if "gradients" in want else []
        if "attention_gradients" in want:
            wanted.append(("maps", [seen.weights for seen in call.maps]))
        if "hidden_gradients" in want:
            wanted.append(("hidden", [state for stream in hidden for state in stream]))
        for number in range(rounds):
            chosen = [groups[p.owner][number] if number < len(groups[p.owner]) else None for p in chunk.parts]
            current = self.aimed(chunk, [None if i is None else targets[i] for i in chosen], targets, groups)
            columns = self.columns(output, current)
            answers = read(columns, self.outputs_of(current), tensors=True)
            active = torch.tensor([i is not None for i in chosen], device=self.device)
            total = answers["value"].sum(-1)[active].sum()
            flat = [tensor for _, tensors in wanted for tensor in tensors]
            last = number == rounds - 1 and "readout" not in want
            gradients = iter(gradient_of(total, flat, keep=not last) if flat else [])
            slopes = {name: [next(gradients) for _ in tensors] for name, tensors in wanted}
            readout = self.readout(columns, current, hidden, active) if "readout" in want else None
            for row, index in enumerate(chosen):
                if index is not None:
                    yield index, self.sliced(current, row, answers, call, hidden, slopes, readout, want)

    def aimed(
        self, chunk: Chunk, chosen: list[Target | None], targets: Sequence[Target], groups: list[list[int]]
    ) -> Chunk:
        """The same rows with other targets; a row without one keeps its first, whose answer is not used."""
        parts = [
            Piece(p.owner, p.which, p.encoding, target or targets[groups[p.owner][0]], p.index, p.visible)
            for p, target in zip(chunk.parts, chosen, strict=True)
        ]
        return Chunk(parts, chunk.lengths, chunk.side, chunk.picked)

    def stacked(self, chunk: Chunk, groups: list[list[int]], embeddings: Sequence[torch.Tensor]) -> list[Any]:
        """Per stream [b L d]: given word embeddings in the layout of a chunk."""
        result = []
        for stream, length in enumerate(chunk.lengths):
            rows = []
            for part in chunk.parts:
                given = embeddings[groups[part.owner][0]][part.index[stream][0]]
                start = chunk.offset(part, stream)
                rows.append(torch.nn.functional.pad(given, (0, 0, start, length - start - len(given))))
            result.append(torch.stack(rows))
        return result

    def hidden_of(self, output: Any) -> list[list[torch.Tensor]]:
        """Per stream the hidden states [b t d], from the first block's input to the last output."""
        return [list(output.hidden_states)]

    def readout(
        self, columns: Columns, chunk: Chunk, hidden: list[list[torch.Tensor]], active: torch.Tensor
    ) -> torch.Tensor:
        """[b L] shares of the rows from which the answer is read.

        Token targets name their rows. A label does not: its rows are those of the last hidden state on which
        its logit depends, which tells [CLS], mean and last-token pooling apart without a table of models.
        """
        rows = self.rows_of(chunk)
        last = hidden[-1][-1]
        if rows is not None:
            weights = torch.zeros(last.shape[:2], device=last.device, dtype=last.dtype)
            return weights.scatter_add(1, rows, torch.full(rows.shape, 1.0 / rows.shape[1]).to(last))
        logit = columns.logits.gather(-1, columns.ids[..., None])[active].sum()
        (slope,) = gradient_of(logit, [last], keep=True)
        size = slope.norm(dim=-1)
        return size / size.sum(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)

    def sliced(
        self,
        chunk: Chunk,
        row: int,
        answers: dict[str, torch.Tensor],
        call: Call,
        hidden: list[list[torch.Tensor]],
        slopes: dict[str, list[torch.Tensor]],
        readout: torch.Tensor | None,
        want: frozenset[str],
    ) -> Trace:
        """The part of a batch that belongs to one row, on the axis of its encoding."""
        part = chunk.parts[row]
        spans = []
        for stream in range(len(chunk.lengths)):
            start = chunk.offset(part, stream)
            spans.append(slice(start, start + part.lengths[stream]))
        size = len(part.encoding)
        trace = Trace(part.encoding, part.target, float(answers["value"][row].sum()))  # type: ignore[arg-type]

        def on_axis(tensors: list[torch.Tensor]) -> torch.Tensor:
            result = torch.zeros(size, tensors[0].shape[-1], dtype=tensors[0].dtype, device=tensors[0].device)
            for stream, tensor in enumerate(tensors):
                result[torch.from_numpy(part.index[stream][0]).to(result.device)] = tensor[row, spans[stream]].detach()
            return result

        trace.embeddings = on_axis(call.leaves)
        if "gradients" in want:
            trace.gradient = on_axis(slopes["gradient"])
        if want & {"hidden", "hidden_gradients"} and len(hidden) == 1:
            trace.hidden = [on_axis([state]) for state in hidden[0]]
            trace.hidden_gradient = [on_axis([slope]) for slope in slopes.get("hidden", [])]
        if want & {"attention", "attention_gradients"}:
            counts: dict[str, int] = {}
            for number, seen in enumerate(call.maps):
                rows, cols = (0 if seen.kind in ("self", "encoder") else 1), (1 if seen.kind == "decoder" else 0)
                gradient = slopes["maps"][number][row][:, spans[rows], spans[cols]] if "maps" in slopes else None
                layer = counts[seen.kind] = counts.get(seen.kind, -1) + 1
                trace.maps.append(
                    Map(
                        seen.kind,
                        layer,
                        part.index[rows][0],
                        part.index[cols][0],
                        seen.weights[row][:, spans[rows], spans[cols]].detach(),
                        gradient,
                    )
                )
        if readout is not None:
            trace.readout = np.zeros(size)
            trace.readout[part.index[-1][0]] = readout[row, spans[-1]].detach().double().cpu().numpy()
        return trace

    def trace_bytes(self, want: frozenset[str]) -> Any:
        """Memory of a traced row: every layer is kept, twice where gradients are wanted."""
        layers = getattr(self.hf.config, "num_hidden_layers", 12) or 12
        factor = layers * (2 if "attention_gradients" in want else 1)
        return lambda lengths, columns: factor * self.row_bytes(lengths, columns)

    # -- plain answers ------------------------------------------------------------------------------

    def logits(self, encodings: Sequence[Encoding], targets: Sequence[Target | None]) -> list[torch.Tensor]:
        """[m v] outcomes of each whole text, for predictions."""
        results: list[torch.Tensor] = [torch.empty(0)] * len(encodings)
        plan = [
            piece
            for number, (encoding, target) in enumerate(zip(encodings, targets, strict=True))
            for piece in pieces(number, encoding, target, np.ones((1, len(encoding)), bool), False)
        ]
        for chunk in chunks(plan, self.budget, self.row_bytes):
            inputs, call = self.tensors(chunk, "mask")
            self.narrow(chunk, call)
            with torch.inference_mode(), running(call):
                found = self.columns(self.view(**inputs), chunk).logits
            for row, part in enumerate(chunk.parts):
                results[part.owner] = found[row].double()
        return results


def gradient_of(total: torch.Tensor, tensors: list[torch.Tensor], keep: bool) -> list[torch.Tensor]:
    """Gradients by autograd.grad (never .backward: the user's .grad is not ours); unused tensors get zeros."""
    found = torch.autograd.grad(total, tensors, retain_graph=keep, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(tensors, found, strict=True)]


def read(columns: Columns, outputs: list[str], tensors: bool = False) -> dict[str, Any]:
    """value, rank, margin and prediction [b m] of each row.

    The value is the logit, log-probability or probability of the target, minus that of the contrast if there
    is one (for log-probabilities the normaliser cancels, so the contrast is a difference of logits).
    """
    logits = columns.logits.float() if columns.logits.dtype in (torch.float16, torch.bfloat16) else columns.logits
    pick = lambda ids: logits.gather(-1, ids[..., None])[..., 0]  # noqa: E731
    mine = pick(columns.ids)
    rival = None if columns.contrast is None else pick(columns.contrast)
    code = torch.tensor([("logit", "log_prob", "prob").index(o) for o in outputs], device=logits.device)[:, None]
    value = mine if rival is None else mine - rival
    if bool((code > 0).any()):
        norm = logits.logsumexp(-1)
        log_prob = mine - norm if rival is None else mine - rival
        prob = (mine - norm).exp() - (0.0 if rival is None else (rival - norm).exp())
        value = torch.where(code == 0, value, torch.where(code == 1, log_prob, prob))
    if tensors:
        return {"value": value}
    best, place = logits.topk(min(2, logits.shape[-1]), dim=-1)
    other = torch.where(place[..., 0] == columns.ids, best[..., -1], best[..., 0]) if rival is None else rival
    found = {
        "value": value,
        "rank": (logits > mine[..., None]).sum(-1),
        "margin": mine - other,
        "predicted": place[..., 0],
    }
    return {name: tensor.cpu().numpy() for name, tensor in found.items()}
