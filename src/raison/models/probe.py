"""What a freshly loaded model can honestly offer.

Nothing is believed because of a name: a view must give the plain model's logits, deleting must equal
masking, an empty source must hide what it holds. What fails is not offered.
"""

from __future__ import annotations

import logging
import math
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from raison.core.errors import ModelError, RaisonError
from raison.core.records import Encoding, Example, Target
from raison.models.attention.call import running
from raison.models.attention.products import name_of
from raison.models.attention.view import bare
from raison.models.protocol import REMOVALS, Question, Trace
from raison.models.runner.adapter import Adapter
from raison.models.runner.answers import Columns, read
from raison.models.runner.batching import Chunk, pieces
from raison.models.runner.score_cache import Memory
from raison.models.tasks.generation import extended

__all__ = ["difference", "probe", "subject"]

SENTENCE = "The old town lies on a hill above the river, and nobody knows who built it first."
log = logging.getLogger("raison")
AFFORDABLE = 760  # tokens: a window up to this size is crossed with a real text
BEYOND = 8  # tokens behind a border
SPAN = re.compile(r"(window|chunk|radius|block_size|local_att)(?!.*layers)")  # settings that may name a border
ROUNDED = 1e-5  # some families round the attention of float64 to float32, in one of its forms only


def probe(model: Adapter) -> Adapter:
    """Find out what the model offers; raise `ModelError` if it can't be used at all."""
    check_weights(model.hf, model.name)
    try:
        encoding, target = subject(model)
        chunk = chunk_of(model, [encoding], target)
        plain = plain_columns(model, chunk)
        viewed = view_logits(model, chunk)
        gap = relative_gap(plain.logits, viewed)
        if gap > tolerance(model) and model.family.positions == "argument":
            # it counts positions in a way of its own (MPNet, Longformer): leave them to the model
            own = lambda config: (getattr(config, "pad_token_id", None) or 0) + 1  # noqa: E731 the longest offset known
            model.family = replace(model.family, positions="none", offset=own)
            viewed = view_logits(model, chunk)
            gap = relative_gap(plain.logits, viewed)
        users = plain_columns(model, chunk, None).logits  # with the attention that users run: it may answer otherwise
        fused = relative_gap(users, viewed)
    except RaisonError:
        raise
    except Exception as error:  # the code of any model runs here
        raise ModelError(f"{model.name} can't run a plain sentence ({first_line(error)}).") from error
    if not torch.isfinite(plain.logits).all():
        raise ModelError(f"{model.name} answers a plain sentence with NaN: use an intact checkpoint or a wider dtype.")
    if gap > tolerance(model) or fused > max(ROUNDED, tolerance(model)):
        raise ModelError(
            f"raison's view of {model.name} does not give the model's own answers, so it can't be explained safely: "
            "please report this architecture."
        )
    if not batches_hold(model, encoding, target, viewed):
        log.info("%s: an answer depends on the texts beside it, so every text runs by itself", model.name)
        model.budget = replace(model.budget, rows=1)
    value = read(plain, ["logit"] * chunk.rows)["value"]
    model.removals = tuple(removals(model, encoding, target, value))
    refuse_changed(model)
    if not model.removals:
        raise ModelError(
            f"No token of {model.name} can be removed in a way that really hides it, so it can't be explained."
        )
    together = model.budget.rows is None
    model.shares_prefixes = (
        together and model.generates and "delete" in model.removals and prefixes_can_be_shared(model, encoding, target)
    )
    model.offers = frozenset({"score"} | insides(model, encoding, target))
    model.switches_heads = "attention" in model.offers and heads_hold(model, encoding, target)
    refuse_changed(model)
    if model.settings.changes:  # later passes run one at a time, each from the start
        log.info("%s: a pass changes the model's settings, which are put back", model.name)
        model.restless, model.shares_prefixes = True, False
        model.forget_view()
    return model


def first_line(error: BaseException) -> str:
    """The first words of an error, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def refuse_changed(model: Adapter) -> None:
    """Raise where passes have changed the view for those that follow."""
    if changed := model.settings.changed():
        raise ModelError(
            f"{model.name} changes its own settings while it runs ({', '.join(changed[:3])}), so an answer would "
            "depend on the texts before it: please report this architecture."
        )


def check_weights(hf: torch.nn.Module, called: str) -> None:
    for name, buffer in hf.named_buffers():
        if buffer.device.type == "meta":
            raise hollow(called, name)
    for name, parameter in hf.named_parameters():
        if parameter.device.type == "meta":
            raise hollow(called, name)
        if not torch.isfinite(parameter.detach()).all():
            raise ModelError(
                f"The weights of {called} hold NaN or infinite numbers ({name}): use an intact checkpoint."
            )


def hollow(called: str, name: str) -> ModelError:
    return ModelError(
        f"{called} is on the device 'meta' or offloaded in part ({name} has no values): load the whole model to "
        "explain it."
    )


def subject(model: Adapter) -> tuple[Encoding, Target]:
    """A text to try, longer than every attention window or chunk for which that is affordable."""
    text = SENTENCE
    near = [span for span in spans(model) if span + BEYOND <= affordable(model)]
    while near and len(model.codec(text).ids) < max(near) + BEYOND:
        text += " " + SENTENCE
    example = Example("Where does the town lie?", text) if model.task == "qa" else Example(text)
    encoding = model.encode([example], truncate=True)[0]
    return model.resolve_targets(encoding)[0] if not model.generates else first_target(model, encoding)


def affordable(model: Adapter) -> int:
    """The longest text to try, in tokens."""
    return min(model.max_tokens or AFFORDABLE, AFFORDABLE)


def first_target(model: Any, encoding: Encoding) -> tuple[Encoding, Target]:
    """The next token of a writer, cheaper than a whole text; an encoder-decoder has written two tokens already."""
    if "source" in encoding.segments:
        encoding = extended(encoding, [model.predict([encoding])[0].target.ids[0]] * 2, model.codec)
    return encoding, model.predict([encoding])[0].target


def spans(model: Adapter) -> list[int]:
    """Every length at which the model may begin to attend in another way: windows, chunks, blocks of its config."""
    config = model.hf.config
    parts = [config, config.get_text_config()] if hasattr(config, "get_text_config") else [config]
    found = {model.family.reach(config)}
    for part in parts:
        for name, value in vars(part).items():
            values = value if isinstance(value, (list, tuple)) else [value]
            if SPAN.search(name):
                found |= {size for size in values if isinstance(size, int) and not isinstance(size, bool)}
    limit = model.max_tokens or math.inf
    return sorted(size for size in found if 1 < size < limit)


def tolerance(model: Adapter) -> float:
    """How far two routes to the same value may differ, relative to it: rounding of the model's own dtype."""
    return {torch.float64: 1e-6, torch.float32: 1e-4}.get(next(model.hf.parameters()).dtype, 5e-2)


def difference(model: Adapter, encoding: Encoding, target: Target, attention: str | None = "eager") -> float:
    """View, with masks and positions given, against an untapped clone with none given: largest gap of logits."""
    chunk = chunk_of(model, [encoding], target)
    return relative_gap(plain_columns(model, chunk, attention).logits, view_logits(model, chunk))


def chunk_of(model: Adapter, encodings: list[Encoding], target: Target) -> Chunk:
    """One pass over whole texts of equal length."""
    plan = [piece for each in encodings for piece in pieces(0, each, target, np.ones((1, len(each)), bool), False)]
    return Chunk(plan, plan[0].lengths, "exact")


@torch.inference_mode()
def plain_columns(model: Adapter, chunk: Chunk, attention: str | None = "eager", watch: Any = None) -> Columns:
    """What an untapped clone answers that is given tokens only."""
    inputs, _ = model.tensors(chunk, "mask")
    plain = {k: v for k, v in inputs.items() if k.endswith("input_ids") or k in ("token_type_ids", "use_cache")}
    with watch or nullcontext():
        output = model.prepare(bare(model.hf, attention))(**plain)
    return model.columns(output, chunk)


@torch.inference_mode()
def view_logits(model: Adapter, chunk: Chunk, heads: np.ndarray | None = None) -> torch.Tensor:
    """Logits of the view, with masks and positions given."""
    inputs, call = model.tensors(chunk, "mask")
    call.heads = None if heads is None else torch.from_numpy(heads)
    with running(call):
        return model.columns(model.view(**inputs), chunk).logits


def relative_gap(reference: torch.Tensor, other: torch.Tensor) -> float:
    """The largest difference, relative to the largest of the reference where that is above 1."""
    return float((reference - other).abs().max() / max(1.0, float(reference.abs().max())))


def batches_hold(model: Adapter, encoding: Encoding, target: Target, alone: torch.Tensor) -> bool:
    """Whether a text is answered beside another as it is `alone` (dynamic quantisation scales over the whole batch)."""
    other = disguise(encoding, target.given(encoding))
    together = view_logits(model, chunk_of(model, [encoding, other], target))
    apart = torch.cat([alone, view_logits(model, chunk_of(model, [other], target))])
    return relative_gap(apart, together) <= tolerance(model)


def removals(model: Adapter, encoding: Encoding, target: Target, plain: np.ndarray) -> list[str]:
    """What absence may mean here: whatever runs and really hides; `delete` first, where it equals `mask`.

    `plain` [1 m] is the logit that the untapped model gives the whole text.
    """
    question = Question(encoding, replace(target, output="logit"), parts_of(encoding, target))
    model.removals = tuple(REMOVALS)
    values: dict[str, np.ndarray] = {}
    for name in REMOVALS:
        found = tried(model, question, name, plain)
        if found is not None:
            values[name] = found
    if "delete" in values:
        agree = "mask" in values and same(model, values["delete"], values["mask"])
        if not agree or not wide_spans_hold(model, len(encoding)):
            del values["delete"]
    return list(values)


def parts_of(encoding: Encoding, target: Target) -> np.ndarray:
    """[5 t] what to keep of a text to see how it copes; the last row keeps everything."""
    free = np.flatnonzero(target.free(encoding))
    keep = np.ones((5, len(encoding)), bool)
    keep[0, free[::2]] = False
    keep[1, free[1:]] = False
    keep[2, free[: len(free) // 2]] = False
    keep[3, free] = False  # and with it the whole source of an encoder-decoder
    return keep


def tried(model: Adapter, question: Question, removal: str, plain: np.ndarray) -> np.ndarray | None:
    """The values of a question under a removal; None where it can't run or does not hide what it removes, or where a
    row that keeps everything is not answered as the `plain` model [1 m] answers it."""
    if removal == "delete" and model.family.positions == "none":
        return None
    if removal == "pad_token" and not model.codec.has_pad:
        return None
    if removal == "mask_token" and model.codec.mask_id is None:
        return None
    parts = question.keep[:-1]
    disguised = [Question(disguise(question.encoding, row), question.target, row[None]) for row in parts]
    try:
        (found,) = model.score([question], removal=removal)
        others = [one.value for one in model.score(disguised, removal=removal)]
    except Exception as error:  # the code of any model runs here
        log.info("%s: can't remove by %s (%s)", model.name, removal, first_line(error))
        return None
    expected = np.concatenate([*others, plain])
    return found.value if np.isfinite(found.value).all() and same(model, found.value, expected) else None


def disguise(encoding: Encoding, keep: np.ndarray) -> Encoding:
    """Other words where `keep` is False: a removal that hides can't tell the difference."""
    ordinary = np.unique(
        encoding.ids[~encoding.fixed & (encoding.start >= 0)]
    )  # no padding: some count positions by it
    other = np.where(encoding.ids == ordinary[0], ordinary[-1], ordinary[0])
    return replace(encoding, ids=np.where(keep, encoding.ids, other))


def same(model: Adapter, one: np.ndarray, other: np.ndarray) -> bool:
    """Equal up to rounding, measured by how much removing changes anything at all."""
    spread = float(np.ptp(one, axis=0).max()) + float(np.ptp(other, axis=0).max())
    noise = 50 * torch.finfo(next(model.hf.parameters()).dtype).eps * max(1.0, float(np.abs(one).max()))
    return bool(np.abs(one - other).max() <= tolerance(model) * spread + noise)


def wide_spans_hold(model: Adapter, length: int) -> bool:
    """Whether `delete` is right beyond the spans that are too wide for a real text of this length."""
    wide = [span for span in spans(model) if span >= length]
    if model.family.reach(model.hf.config) in wide:
        return False  # it counts tokens, not positions: no short text tells
    try:
        return all(border_holds(model, span) for span in wide)
    except Exception as error:  # the code of any model runs here
        log.info("%s: can't look beyond its windows (%s)", model.name, first_line(error))
        return False


def border_holds(model: Adapter, span: int) -> bool:
    """A few tokens on both sides of a border: deleting equals masking, and no windowed layer looks across."""
    encoding = model.encode([Example("one two three four five six seven eight nine ten")])[0]
    before = np.arange(2)
    around = np.arange(len(encoding) - len(before)) + span - len(encoding) // 2
    if model.max_tokens is not None and around[-1] >= model.max_tokens:
        return True  # no text is that long
    encoding = replace(encoding, positions=np.concatenate([before, around]))
    target = model.resolve_targets(encoding)[0][1] if not model.generates else first_target(model, encoding)[1]
    question = Question(encoding, replace(target, output="logit"), np.ones((4, len(encoding)), bool))
    question.keep[0, before] = False
    question.keep[1, encoding.positions < span] = False
    question.keep[2, ::2] = False
    deleted, masked = (model.score([question], removal=name)[0].value for name in ("delete", "mask"))
    return same(model, deleted, masked) and none_looks_across(model, encoding, target, span)


def none_looks_across(model: Adapter, encoding: Encoding, target: Target, span: int) -> bool:
    """Whether layers with a window or chunk of `span` give no attention from behind the border to the first tokens."""
    ((_, trace),) = model.trace([encoding], [target], want=frozenset({"attention"}))
    kinds = getattr(model.hf.config, "layer_types", None) or ["sliding_attention"] * len(trace.maps)
    for kind, seen in zip(kinds, trace.maps, strict=False):
        across = seen.weights[:, encoding.positions[seen.rows] > span][:, :, :2]
        if kind in ("sliding_attention", "chunked_attention") and bool(across.any()):
            return False
    return True


def prefixes_can_be_shared(model: Adapter, encoding: Encoding, target: Target) -> bool:
    """Whether prefixes can be shared: packed nodes give the literal answers, also from parents of an earlier call."""
    question = Question(encoding, replace(target, output="logit"), parts_of(encoding, target))
    memory = Memory()
    model.shares_prefixes = True
    try:
        model.score([replace(question, keep=question.keep[:2])], memory=memory)
        (packed,) = model.score([question], memory=memory)
    except Exception as error:  # the code of any model runs here
        log.info("%s: prefixes can't be shared (%s)", model.name, first_line(error))
        return False
    (literal,) = model.score([question], removal="delete")
    return same(model, literal.value, packed.value)


def every_block(trace: Trace, depth: int) -> bool:
    """Whether each of `depth` blocks has its own map: methods number maps as blocks, and hybrids attend in some."""
    blocks: dict[str, list[int]] = {}
    for seen in trace.maps:
        blocks.setdefault(seen.kind, []).append(seen.block)
    if any(len(set(each)) < len(each) for each in blocks.values()):
        return False  # two maps of one block
    counts = {kind: len(each) for kind, each in blocks.items()}
    if "self" in counts:
        return counts["self"] == depth
    return counts.get("encoder", 0) > 0 and counts.get("decoder", 0) == counts.get("cross", 0) > 0


def insides(model: Adapter, encoding: Encoding, target: Target) -> set[str]:
    """gradients, hidden, attention: what a trace really brings."""
    target = replace(target, output="logit")  # the gradient of a log-probability of 1.0 is zero
    offers: set[str] = set()
    try:
        ((_, trace),) = model.trace([encoding], [target], want=frozenset({"gradients"}))
        if trace.gradient is None or not torch.isfinite(trace.gradient).all() or not bool(trace.gradient.any()):
            return offers
        offers.add("gradients")
        want = frozenset({"gradients", "hidden", "hidden_gradients", "readout"})
        ((_, trace),) = model.trace([encoding], [target], want=want)
        if trace.readout is not None and abs(trace.readout.sum() - 1) < 1e-3:
            offers.add("hidden")
        depth = len(trace.hidden) - 1
        for bypass in (False, True):
            model.bypasses_tap = bypass
            ((_, trace),) = model.trace([encoding], [target], want=frozenset({"attention_gradients"}))
            seen = all(m.gradient is not None and bool(m.gradient.any()) for m in trace.maps[-1:])
            if seen and every_block(trace, depth):
                return offers | ({"attention"} if "hidden" in offers else set())
        model.bypasses_tap = False
    except Exception as error:  # the code of any model runs here, and what can't be recorded is not offered
        log.info("%s: not everything can be recorded (%s)", model.name, first_line(error))
    return offers


class HeadsOff(TorchFunctionMode):
    """Multiplies what comes out of each attention's softmax with the factors of its heads: literal, and slow."""

    def __init__(self, factors: np.ndarray):
        super().__init__()
        self.factors = iter(torch.from_numpy(factors))  # [h] for each attention, in the order in which they run

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if name_of(func) == "softmax" and isinstance(result, torch.Tensor) and result.dim() == 4:
            return result * next(self.factors).to(result)[None, :, None, None]
        return result


def heads_hold(model: Adapter, encoding: Encoding, target: Target) -> bool:
    """Whether heads that are switched off in the view change what they change in an untapped clone."""
    if model.bypasses_tap:
        return False
    try:
        ((_, trace),) = model.trace([encoding], [target], want=frozenset({"attention"}))
        shape = (len(trace.maps), len(trace.maps[0].weights))
        factors = (np.add.outer(*map(np.arange, shape)) % 2).astype(float)  # every second head
        chunk = chunk_of(model, [encoding], target)
        viewed = view_logits(model, chunk, factors)
        literal = plain_columns(model, chunk, watch=HeadsOff(factors)).logits
    except Exception as error:  # the code of any model runs here
        log.info("%s: heads can't be switched off (%s)", model.name, first_line(error))
        return False
    return relative_gap(literal, viewed) <= tolerance(model)
