"""Runs one transformers model: a view of it, and forward passes of that view on batches of texts.

A view also runs in two halves: its blocks, and what makes logits of their result. What follows the blocks (a bias, a
scale, a soft cap, the head) is the model's business; so its own code runs.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from raison.core import progress
from raison.core.errors import InputError, Unsupported
from raison.core.records import Encoding, Target
from raison.core.registry import suggest_name
from raison.models.attention.call import Call, running_call
from raison.models.attention.products import RecordedSoftmaxes
from raison.models.attention.view import view_of
from raison.models.attention.view_settings import ModelSettings, keep_settings, view_fingerprint
from raison.models.loaded_model import LoadedModel
from raison.models.protocol import REMOVALS, Budget
from raison.models.runner import meter
from raison.models.runner.answers import Columns
from raison.models.runner.batching import (
    Chunk,
    Piece,
    RowBytes,
    RowCost,
    chunks,
    pieces_of_whole_texts,
)
from raison.models.runner.output_format import Output, OutputFormat

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = [
    "ModelInputs",
    "Prepared",
    "Runner",
    "blocks_of_view",
    "install_shortcut_in_view",
    "logits_of_view_behind_blocks",
    "running",
]

ModelInputs = dict[str, torch.Tensor | bool]


@dataclass
class Prepared:
    """A forward pass that is ready to run: its rows, the arguments of the model, and what the tap shall do."""

    chunk: Chunk
    inputs: ModelInputs
    call: Call


@dataclass
class StreamTensors:
    """One stream of tokens of a batch [b L]."""

    ids: torch.Tensor
    attended: torch.Tensor
    positions: torch.Tensor
    present: torch.Tensor | None = None  # False makes the word embedding of a token zero


class Runner:
    """A view of a transformers model, and the passes through it; what outcomes mean is the task's business."""

    def __init__(self, loaded: LoadedModel, task: OutputFormat, budget: Budget | None = None):
        self.loaded = loaded
        self.task = task
        self.budget = budget or Budget()
        self._accepts = frozenset(inspect.signature(loaded.hf.forward).parameters)

        # what the probe finds out
        self.removals: tuple[str, ...] = ()
        self.shares_prefixes = False  # prefixes can be shared between questions: packed = literal
        self.bypasses_tap = False  # attention maps come from a function mode
        # heads can be switched off: it changes what it would change in the plain model
        self.switches_heads = False
        # a pass changes the model's settings, which are put back: one pass at a time
        self.one_pass_at_a_time = False

        self._lock = threading.Lock()
        self._view: tuple[object, PreTrainedModel] | None = None
        self.settings: ModelSettings  # of the view, to which every pass returns it

    # -- the view ---------------------------------------------------------------------------------------

    @property
    def view(self) -> PreTrainedModel:
        """The view of the model's present weights; made anew when they have moved."""
        mark = view_fingerprint(self.loaded.hf)
        found = self._view
        if found is None or found[0] != mark:
            with self._lock:
                if self._view is None or self._view[0] != mark:
                    self._view = (mark, self.new_view())
                found = self._view
        return found[1]

    def new_view(self) -> PreTrainedModel:
        view: PreTrainedModel = view_of(self.loaded.hf, self.loaded.family.prepare)
        self.task.prepare_view(view)
        self.settings = keep_settings(view, one_at_a_time=self.one_pass_at_a_time)
        return view

    def forget_view(self) -> None:
        """Let the next call make a view anew."""
        self._view = None

    @property
    def word_tables(self) -> list[nn.Embedding]:
        """The word table of each stream, as a module: what it returns for an id is the embedding that a trace shows."""
        view: Any = self.view
        parts = [view]
        if view.config.is_encoder_decoder:
            parts = [view.get_encoder(), view.get_decoder()]
        return [part.get_input_embeddings() for part in parts]

    @property
    def map_source(self) -> str:
        """What a call records to see attention maps."""
        return "softmaxes" if self.bypasses_tap else "attention"

    # -- what is refused --------------------------------------------------------------------------------

    @property
    def layout(self) -> Budget:
        """The budget, if its padding suits the head."""
        if self.budget.padding not in self.task.paddings:
            raise Unsupported(
                f"{self.loaded.name} can't run with {self.budget.padding!r} padding: "
                f"use one of {', '.join(self.task.paddings)}."
            )
        return self.budget

    def removal_named(self, removal: str | None) -> str:
        """The removal to use: the model's default, or the one that is asked for if the model can do it."""
        if removal is None:
            return self.removals[0]
        if removal not in REMOVALS:
            raise InputError(
                f"There is no removal called {removal!r}.{suggest_name(str(removal), list(REMOVALS))} "
                f"Use one of {', '.join(REMOVALS)}."
            )
        if removal not in self.removals:
            raise Unsupported(
                f"{self.loaded.name} can't remove tokens by {removal!r}: use one of {', '.join(self.removals)}."
            )
        return removal

    def check_heads(self, heads: np.ndarray | None) -> None:
        """Refuse to switch heads off where attention is a function of the family's own, which nobody reaches."""
        if heads is not None and not self.switches_heads:
            raise Unsupported(
                f"The heads of {self.loaded.name} can be looked at, but not switched off: choose another model."
            )

    # -- batches ----------------------------------------------------------------------------------------

    @property
    def row_cost(self) -> RowCost:
        """Memory of one row in one layer, and of its answers."""
        setting = self.loaded.setting
        return RowCost(
            heads=setting("num_attention_heads") or setting("encoder_attention_heads") or 12,
            vocabulary=setting("vocab_size") if self.task.generates else 0,
        )

    def cost_of_traced_row(self, want: frozenset[str]) -> RowCost:
        """Memory of a traced row: every layer is kept, twice where gradients are wanted."""
        layers = self.loaded.setting("num_hidden_layers") or 12
        if "attention_gradients" in want:
            layers = 2 * layers
        return replace(self.row_cost, layers=layers)

    def prepare(
        self,
        plan: Iterable[Piece],
        *,
        removal: str = "mask",
        row_bytes: RowBytes | None = None,
        heads: np.ndarray | None = None,
        layout: Budget | None = None,
    ) -> Iterator[Prepared]:
        """Forward passes that cover all rows of a plan, within the budget."""
        # once: looking whether the weights have moved costs as much as a small batch
        view = self.view
        factors = None
        if heads is not None:
            factors = torch.from_numpy(np.asarray(heads, dtype=np.float64))
        for chunk in chunks(plan, layout or self.layout, row_bytes or self.row_cost):
            prepared = self.arguments(chunk, removal)
            prepared.call.view = view
            prepared.call.heads = factors
            yield prepared

    def prepare_whole_texts(
        self,
        encodings: Sequence[Encoding],
        targets: Sequence[Target | None] = (),
        *,
        row_bytes: RowBytes | None = None,
        layout: Budget | None = None,
    ) -> Iterator[Prepared]:
        """Forward passes that cover whole texts, of which nothing is removed."""
        plan = pieces_of_whole_texts(encodings, targets)
        return self.prepare(plan, row_bytes=row_bytes, layout=layout)

    def arguments(self, chunk: Chunk, removal: str) -> Prepared:
        """The arguments of the view's forward for a chunk, and the call that goes with them."""
        inputs: ModelInputs = {}
        positions = []
        present = []
        for stream, (ids_name, mask_name) in enumerate(self.task.arguments):
            tensors = self.stream_tensors(chunk, stream, removal)
            inputs[ids_name] = tensors.ids
            inputs[mask_name] = tensors.attended
            positions.append(tensors.positions)
            present.append(tensors.present)

        family = self.loaded.family
        if family.positions == "argument" and "position_ids" in self._accepts:
            inputs["position_ids"] = self.position_ids(positions[0])
        if "token_type_ids" in self._accepts:
            types = []
            for part in chunk.parts:
                if part.encoding.types is not None:
                    types.append(part.encoding.types[part.index[0]])
            if types:
                inputs["token_type_ids"] = self.put(chunk.fill(0, types, 0))
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False

        meter.count_passes(chunk.rows, tokens=chunk.tokens)  # whatever is built is run
        call = Call(
            positions=None if family.positions == "none" else positions,
            present=present if removal == "zero" else None,
        )
        return Prepared(chunk, inputs, call)

    def stream_tensors(self, chunk: Chunk, stream: int, removal: str) -> StreamTensors:
        """What one stream of a chunk is called with."""
        codec = self.loaded.codec
        if chunk.lengths[stream] == 0:  # nothing kept: one token that nobody may see
            one = np.ones((chunk.rows, 1), np.int64)
            nothing = self.put(one * 0)
            return StreamTensors(
                ids=self.put(one * codec.pad_id), attended=nothing, positions=nothing
            )

        absent = {"mask_token": codec.mask_id, "pad_token": codec.pad_id}.get(removal)
        ids = []
        positions = []
        shown = []
        for part in chunk.parts:
            encoding, index, visible = part.encoding, part.index[stream], part.visible[stream]
            own = encoding.ids[index]
            ids.append(own if absent is None else np.where(visible, own, absent))
            positions.append(encoding.positions[index])
            shown.append(visible)
        attended = shown
        if removal not in ("delete", "mask"):
            attended = [np.ones_like(visible) for visible in shown]
        return StreamTensors(
            ids=self.put(chunk.fill(stream, ids, codec.pad_id)),
            attended=self.put(chunk.fill(stream, attended, False)).long(),
            positions=self.put(chunk.fill(stream, positions, 0)),
            present=self.put(chunk.fill(stream, shown, True)) if removal == "zero" else None,
        )

    def position_ids(self, positions: torch.Tensor) -> torch.Tensor:
        """Original positions as the model calls them."""
        return positions + self.loaded.position_offset

    def put(self, values: np.ndarray) -> torch.Tensor:
        """An array on the model's device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.loaded.device)

    def rows_of(self, chunk: Chunk) -> torch.Tensor | None:
        """[b m] columns from which token targets are read; None where the output has no rows to choose."""
        if chunk.asked is None or not chunk.asked.rows.size:
            return None
        return self.put(chunk.asked.rows)

    def read_only_target_rows(self, prepared: Prepared) -> None:
        """Let the LM head compute only the rows that the chunk's targets are read from."""
        if self.task.generates:
            prepared.call.rows = self.rows_of(prepared.chunk)
            prepared.chunk.picked = True

    # -- passes -----------------------------------------------------------------------------------------

    def forward(
        self,
        prepared: Prepared,
        *,
        graph: bool = False,
        hidden: bool = False,
        watch: TorchFunctionMode | None = None,
    ) -> Output:
        """The output of a forward pass, with its graph and hidden states if they are wanted; its call has the rest."""
        call = prepared.call
        inputs = {**prepared.inputs, "output_hidden_states": True} if hidden else prepared.inputs
        with ExitStack() as around:
            around.enter_context(torch.set_grad_enabled(graph))
            around.enter_context(running(call))
            if "softmaxes" in call.record:
                around.enter_context(RecordedSoftmaxes(call))
            if watch is not None:
                around.enter_context(watch)
            view = self.view if call.view is None else call.view
            output: Output = view(**inputs)
        return output

    def columns(self, output: Output, chunk: Chunk) -> Columns:
        """Where the outcomes of the chunk's targets stand in an output."""
        return self.task.columns(output, chunk)

    def run_part(self, part: nn.Module, call: Call, inputs: ModelInputs) -> torch.Tensor:
        """[b t d] last hidden states of a part of a view: its encoder, or its blocks."""
        with torch.inference_mode(), running(call):
            states: torch.Tensor = part(**inputs).last_hidden_state
        return states

    # -- others like this one ---------------------------------------------------------------------------

    def with_budget(self, budget: Budget) -> Runner:
        """A runner with other batches; the view is shared."""
        other = copy.copy(self)
        other.budget = budget
        return other

    def with_model(self, loaded: LoadedModel, task: OutputFormat) -> Runner:
        """A runner like this one for another model of the same architecture."""
        other = copy.copy(self)
        other.loaded, other.task = loaded, task
        other._lock, other._view = threading.Lock(), None
        return other


@contextmanager
def running(call: Call) -> Iterator[Call]:
    """Make `call` the running one, around every pass of a model; who waits for it may end it here."""
    progress.check()
    token = running_call.set(call)
    try:
        yield call
    finally:
        running_call.reset(token)


# -- a view in two halves ------------------------------------------------------------------------------------


def blocks_of_view(view: PreTrainedModel) -> nn.Module:
    """Everything before the head: the decoder of an encoder-decoder, else the model inside the model."""
    if view.config.is_encoder_decoder:
        decoder: nn.Module = view.get_decoder()
        return decoder
    blocks: nn.Module = getattr(view, view.base_model_prefix)
    return blocks


def install_shortcut_in_view(view: PreTrainedModel) -> None:
    """Let the view's own forward begin behind the blocks, where a call brings their result."""
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    try:
        blocks = blocks_of_view(view)
    except (AttributeError, TypeError):
        return  # no such half: the probe will find that nothing can be packed
    if blocks is None or blocks is view:
        return
    plain = blocks.forward

    def forward(*args: object, **kwargs: object) -> object:
        call = running_call.get()
        if call is not None and call.tail is not None:
            return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=call.tail)
        return plain(*args, **kwargs)

    blocks.forward = forward


def logits_of_view_behind_blocks(view: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """[n v] logits of last hidden states [n d]."""
    from transformers.modeling_outputs import BaseModelOutput

    states = hidden[:, None]
    ids = torch.zeros(len(hidden), 1, dtype=torch.long, device=hidden.device)
    with running(Call(tail=states)):
        if view.config.is_encoder_decoder:
            encoded = BaseModelOutput(states)
            output = view(decoder_input_ids=ids, encoder_outputs=encoded, use_cache=False)
        else:
            output = view(input_ids=ids, use_cache=False)
    logits: torch.Tensor = output.logits
    return logits[:, 0]
