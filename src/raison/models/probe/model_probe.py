"""`probe_model`: everything that is tried on a model before it is believed: its weights, and the answers of the
plain and the viewed model.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import torch

from raison.core.errors import ModelError, RaisonError
from raison.core.records import Encoding, Target
from raison.models.probe.probe_text import probe_encoding_with_other_words, probe_text_and_target
from raison.models.probe.removal_offers import prefixes_can_be_shared, working_removals
from raison.models.probe.trace_offers import heads_can_be_switched_off, offers_of_traces
from raison.models.probe.view_differences import (
    chunk_of_whole_texts,
    error_in_one_line,
    outcomes_of_plain_model,
    outcomes_of_view,
    relative_difference,
    tolerated_difference_of_dtype,
)
from raison.models.runner.answers import Columns, values_of
from raison.models.runner.batching import Chunk
from raison.models.runner.runner import Runner
from raison.models.transformers_model import TransformersModel

__all__ = ["check_weights", "probe_model"]

log = logging.getLogger("raison")
ROUNDED = 1e-5  # some families round the attention of float64 to float32, in one of its forms only


def probe_model(model: TransformersModel) -> TransformersModel:
    """Find out what the model offers; raise `ModelError` if it can't be used at all."""
    runner = model.runner
    check_weights(model.hf, model.name)
    try:
        encoding, target = probe_text_and_target(model)
        chunk = chunk_of_whole_texts([encoding], target)
        plain, viewed = plain_and_viewed(runner, chunk)
        # with the attention that users run: it may answer otherwise
        users = outcomes_of_plain_model(runner, chunk, attention=None).logits
    except RaisonError:
        raise
    except Exception as error:  # the code of any model runs here
        raise ModelError(
            f"{model.name} can't run a plain sentence ({error_in_one_line(error)})."
        ) from error
    check_answers(runner, plain.logits, viewed, users)

    if not texts_in_a_batch_stand_alone(runner, encoding, target, viewed):
        log.info(
            "%s: an answer depends on the texts beside it, so every text runs by itself", model.name
        )
        runner.budget = replace(runner.budget, rows=1)
    value = values_of(plain, ["logit"] * chunk.rows).cpu().numpy()
    runner.removals = tuple(working_removals(model, encoding, target, value))
    refuse_changed(runner)
    if not model.removals:
        raise ModelError(
            f"No token of {model.name} can be removed in a way that really hides it, so it can't be explained."
        )

    runner.shares_prefixes = False
    if runner.budget.rows is None and model.generates and "delete" in model.removals:
        runner.shares_prefixes = prefixes_can_be_shared(model, encoding, target)
    model.offers = frozenset({"score"} | offers_of_traces(model, encoding, target))
    runner.switches_heads = "attention" in model.offers and heads_can_be_switched_off(
        model, encoding, target
    )
    refuse_changed(runner)
    if runner.settings.changes:  # later passes run one at a time, each from the start
        log.info("%s: a pass changes the model's settings, which are put back", model.name)
        runner.one_pass_at_a_time, runner.shares_prefixes = True, False
        runner.forget_view()
    return model


def plain_and_viewed(runner: Runner, chunk: Chunk) -> tuple[Columns, torch.Tensor]:
    """What the untapped model and the view answer; positions are left to a model that counts them in its own way."""
    plain = outcomes_of_plain_model(runner, chunk)
    viewed = outcomes_of_view(runner, chunk)
    loaded = runner.loaded
    differ = relative_difference(plain.logits, viewed) > tolerated_difference_of_dtype(loaded.dtype)
    if differ and loaded.family.positions == "argument":  # MPNet, Longformer
        loaded.family = replace(loaded.family, positions="none", offset=longest_offset)
        viewed = outcomes_of_view(runner, chunk)
    return plain, viewed


def longest_offset(config: Any) -> int:
    """The longest offset of positions that is known: they are counted from behind the padding id."""
    padding: int = getattr(config, "pad_token_id", None) or 0
    return padding + 1


def check_answers(
    runner: Runner, plain: torch.Tensor, viewed: torch.Tensor, users: torch.Tensor
) -> None:
    """Raise unless the view gives the model's own answers, with either form of its attention."""
    name = runner.loaded.name
    if not torch.isfinite(plain).all():
        raise ModelError(
            f"{name} answers a plain sentence with NaN: use an intact checkpoint or a wider dtype."
        )
    near = tolerated_difference_of_dtype(runner.loaded.dtype)
    same = relative_difference(plain, viewed) <= near
    as_used = relative_difference(users, viewed) <= max(ROUNDED, near)
    if same and not as_used:
        # eager adds ALiBi twice in Falcon; "sdpa" leaves out Gemma 2's soft cap before transformers 5.21
        raise ModelError(
            f"raison's view of {name} does not give the model's own answers: with eager attention, which raison looks "
            "into, the model answers otherwise than with its own. Where eager is right, load the model by transformers "
            'with attn_implementation="eager", and pass it with its tokenizer.'
        )
    if not same:
        raise ModelError(
            f"raison's view of {name} does not give the model's own answers, so it can't be explained safely: "
            "please report this architecture."
        )


def texts_in_a_batch_stand_alone(
    runner: Runner, encoding: Encoding, target: Target, alone: torch.Tensor
) -> bool:
    """Whether a text is answered beside another as it is `alone` (dynamic quantisation scales over the whole batch)."""
    other = probe_encoding_with_other_words(encoding, target.given(encoding))
    together = outcomes_of_view(runner, chunk_of_whole_texts([encoding, other], target))
    other_alone = outcomes_of_view(runner, chunk_of_whole_texts([other], target))
    return relative_difference(
        torch.cat([alone, other_alone]), together
    ) <= tolerated_difference_of_dtype(runner.loaded.dtype)


def refuse_changed(runner: Runner) -> None:
    """Raise where passes have changed the view for those that follow."""
    changed = runner.settings.changed()
    if changed:
        raise ModelError(
            f"{runner.loaded.name} changes its own settings while it runs ({', '.join(changed[:3])}), so an answer "
            "would depend on the texts before it: please report this architecture."
        )


def check_weights(hf: torch.nn.Module, called: str) -> None:
    """Raise where weights have no values, or some that are no numbers."""
    for name, buffer in hf.named_buffers():
        check_device(buffer, called, name)
    for name, parameter in hf.named_parameters():
        check_device(parameter, called, name)
        if not torch.isfinite(parameter.detach()).all():
            raise ModelError(
                f"The weights of {called} hold NaN or infinite numbers ({name}): use an intact checkpoint."
            )


def check_device(tensor: torch.Tensor, called: str, name: str) -> None:
    """Raise where a tensor has no values."""
    if tensor.device.type == "meta":
        raise ModelError(
            f"{called} is on the device 'meta' or offloaded in part ({name} has no values): load the whole model to "
            "explain it."
        )
