"""What a freshly loaded model can honestly offer.

Nothing is believed because of a name: a view must give the plain model's logits, deleting must equal
masking, an empty source must hide what it holds. What fails is not offered.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from raison.errors import ModelError, RaisonError
from raison.models.adapter import Adapter
from raison.models.base import REMOVALS, Question, Trace
from raison.models.generation import extended
from raison.models.layout import chunks, pieces
from raison.models.memory import Memory
from raison.models.tap import bare, running
from raison.types import Encoding, Example, Target

__all__ = ["difference", "probe", "subject"]

SENTENCE = "The old town lies on a hill above the river, and nobody knows who built it first."
log = logging.getLogger("raison")
AFFORDABLE = 600  # tokens: a window up to this size is crossed with a real text
ROUNDED = 1e-5  # some families round the attention of float64 to float32, in one of its forms only


def probe(model: Adapter) -> Adapter:
    """Find out what the model offers; raise `ModelError` if it can't be used at all."""
    check_weights(model.hf, model.name)
    try:
        encoding, target = subject(model)
        gap = difference(model, encoding, target)
        if gap > tolerance(model) and model.family.positions == "argument":
            # it counts positions in a way of its own (MPNet, Longformer): leave them to the model
            own = lambda config: (getattr(config, "pad_token_id", None) or 0) + 1  # noqa: E731 the longest offset known
            model.family = replace(model.family, positions="none", offset=own)
            gap = difference(model, encoding, target)
        fused = difference(model, encoding, target, None)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise ModelError(f"{model.name} can't run a plain sentence ({error}).") from error
    if gap > tolerance(model) or fused > max(ROUNDED, tolerance(model)):
        raise ModelError(
            f"raison's view of {model.name} does not give the model's own answers, so it can't be explained safely: "
            "please report this architecture."
        )
    model.removals = tuple(removals(model, encoding, target))
    if not model.removals:
        raise ModelError(
            f"No token of {model.name} can be removed in a way that really hides it, so it can't be explained."
        )
    model.packs = model.generates and "delete" in model.removals and packs(model, encoding, target)
    model.offers = frozenset({"score"} | insides(model, encoding, target))
    return model


def check_weights(hf: torch.nn.Module, called: str) -> None:
    for name, parameter in hf.named_parameters():
        if parameter.device.type == "meta":
            raise ModelError(f"Some weights of {called} are offloaded ({name}): load the whole model to explain it.")
        if not torch.isfinite(parameter).all():
            raise ModelError(
                f"The weights of {called} hold NaN or infinite numbers ({name}): use an intact checkpoint."
            )


def subject(model: Adapter) -> tuple[Encoding, Target]:
    """A text to try, longer than the smallest attention window where that is affordable."""
    window = smallest_window(model)
    text = SENTENCE
    limit = min(model.limit or AFFORDABLE, AFFORDABLE)
    if window is not None and window < limit:
        while len(model.codec(text).ids) < min(window + 8, limit):
            text += " " + SENTENCE
    pair = "The town lies on a hill." if model.task == "qa" else None
    example = Example(text, pair) if pair is None else Example("Where does the town lie?", text)
    encoding = model.encode([example], truncate=True)[0]
    return model.aim(encoding)[0] if not model.generates else first_target(model, encoding)


def first_target(model: Any, encoding: Encoding) -> tuple[Encoding, Target]:
    """The next token of a writer, cheaper than a whole text; an encoder-decoder has written two tokens already."""
    if "source" in encoding.segments:
        encoding = extended(encoding, [model.predict([encoding])[0].target.ids[0]] * 2, model.codec)
    return encoding, model.predict([encoding])[0].target


def smallest_window(model: Adapter) -> int | None:
    """The narrowest attention window of any layer, in tokens."""
    config = model.hf.config
    found = [getattr(config, name, None) for name in ("sliding_window", "local_attention", "attention_window_size")]
    sizes = [size for size in found if isinstance(size, int) and size > 0]
    return min(sizes) if sizes else None


def tolerance(model: Adapter) -> float:
    """How far two routes to the same value may differ, relative to it: rounding of the model's own dtype."""
    return {torch.float64: 1e-6, torch.float32: 1e-4}.get(next(model.hf.parameters()).dtype, 5e-2)


def difference(model: Adapter, encoding: Encoding, target: Target, attention: str | None = "eager") -> float:
    """View, with masks and positions given, against an untapped clone with none given: largest gap of logits.

    The clone's attention is eager, as the view's is; or the one that users run (None), which a family may have made to
    answer differently.
    """
    (piece,) = pieces(0, encoding, target, np.ones((1, len(encoding)), bool), False)
    (chunk,) = chunks([piece], model.layout, model.row_bytes)
    inputs, call = model.tensors(chunk, "mask")
    plain = {k: v for k, v in inputs.items() if k.endswith("input_ids") or k in ("token_type_ids", "use_cache")}
    with torch.inference_mode():
        reference = model.columns(model.prepare(bare(model.hf, attention))(**plain), chunk).logits
        with running(call):
            viewed = model.columns(model.view(**inputs), chunk).logits
    if not torch.isfinite(reference).all():
        raise ModelError(f"{model.name} answers a plain sentence with NaN: use an intact checkpoint or a wider dtype.")
    return float((reference - viewed).abs().max() / max(1.0, float(reference.abs().max())))


def removals(model: Adapter, encoding: Encoding, target: Target) -> list[str]:
    """What absence may mean here: whatever runs and really hides; `delete` first, where it equals `mask`."""
    free = np.flatnonzero(target.free(encoding))
    keep = np.ones((5, len(encoding)), bool)
    keep[0, free[::2]] = False
    keep[1, free[1:]] = False
    keep[2, free[: len(free) // 2]] = False
    keep[3, free] = False  # and with it the whole source of an encoder-decoder; the last row keeps everything
    question = Question(encoding, replace(target, output="logit"), keep)
    model.removals = tuple(REMOVALS)
    values = {name: value for name in REMOVALS if (value := tried(model, question, name)) is not None}
    if "delete" in values and not (
        "mask" in values and same(model, values["delete"], values["mask"]) and windows_hold(model)
    ):
        del values["delete"]
    return list(values)


def tried(model: Adapter, question: Question, removal: str) -> np.ndarray | None:
    """The values of a question under a removal; None if it can't run or does not hide what it removes."""
    if (removal == "delete" and model.family.positions == "none") or (
        removal == "pad_token" and not model.codec.has_pad
    ):
        return None
    if removal == "mask_token" and model.codec.mask_id is None:
        return None
    disguised = [Question(disguise(question.encoding, row), question.target, row[None]) for row in question.keep]
    try:
        (found,) = model.score([question], removal=removal)
        others = np.concatenate([one.value for one in model.score(disguised, removal=removal)])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        log.info("%s: can't remove by %s (%s)", model.name, removal, error)
        return None
    return found.value if np.isfinite(found.value).all() and same(model, found.value, others) else None


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


def windows_hold(model: Adapter) -> bool:
    """Windows too wide for a real text: three tokens, the first beyond the window of the others by position.

    A windowed layer must give it no attention at all. (Narrow windows were crossed by the text itself.)
    """
    window = smallest_window(model)
    if window is None or window <= AFFORDABLE or model.limit is None or window + 3 > model.limit:
        return True
    encoding = model.encode([Example("one two three four five")])[0]
    gapped = replace(encoding, positions=np.array([0, *range(window + 1, window + len(encoding))]))
    target = model.aim(gapped)[0][1] if not model.generates else first_target(model, gapped)[1]
    ((_, trace),) = model.trace([gapped], [target], want=frozenset({"attention"}))
    kinds = getattr(model.hf.config, "layer_types", None) or ["sliding_attention"] * len(trace.maps)
    far = [float(seen.weights[:, 1:, 0].abs().max()) for seen in trace.maps]
    return all((kind != "sliding_attention") or reach == 0.0 for kind, reach in zip(kinds, far, strict=False))


def packs(model: Adapter, encoding: Encoding, target: Target) -> bool:
    """Whether prefixes can be shared: packed nodes give the literal answers, also from parents of an earlier call."""
    free = np.flatnonzero(target.free(encoding))
    keep = np.ones((5, len(encoding)), bool)
    keep[0, free[::2]] = False
    keep[1, free[1:]] = False
    keep[2, free[: len(free) // 2]] = False
    keep[3, free] = False
    question = Question(encoding, replace(target, output="logit"), keep)
    memory = Memory()
    model.packs = True
    try:
        model.score([replace(question, keep=keep[:2])], memory=memory)
        (packed,) = model.score([question], memory=memory)
    except (RuntimeError, AttributeError, IndexError, TypeError, ValueError) as error:
        log.info("%s: prefixes can't be shared (%s)", model.name, error)
        return False
    (literal,) = model.score([question], removal="delete")
    return same(model, literal.value, packed.value)


def every_block(trace: Trace, depth: int) -> bool:
    """Whether each of `depth` blocks has its map: methods number them as blocks, and some models attend in a few."""
    kinds = Counter(seen.kind for seen in trace.maps)
    if "self" in kinds:
        return kinds["self"] == depth
    return kinds["encoder"] > 0 and kinds["decoder"] == kinds["cross"] > 0


def insides(model: Adapter, encoding: Encoding, target: Target) -> set[str]:
    """gradients, hidden, attention: what a trace really brings."""
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
    except (RuntimeError, AttributeError, TypeError, IndexError, RaisonError) as error:
        log.info("%s: not everything can be recorded (%s)", model.name, error)  # and what can't is not offered
    return offers
