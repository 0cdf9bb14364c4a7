"""A rationalizer around an encoder: where it is split, its heads, and whether tokens can be hidden from it at all."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch

from raison.core import progress
from raison.core.errors import InputError, Unsupported
from raison.models.families import family_of
from raison.rationalizers.batching import added_by, pad_of, sorted_batches
from raison.rationalizers.block_ranges import blocks_of, stretch
from raison.rationalizers.config import Frame
from raison.rationalizers.gru import Recurrent
from raison.rationalizers.homogeneity import Homogeneity, homogeneity, split_of
from raison.rationalizers.module import Rationalizer, RationalizerConfig
from raison.training.class_data import Lines

__all__ = ["assembled", "defaulted", "framed", "room"]

ENCODERS = "use an encoder such as BERT, RoBERTa, DistilBERT, ELECTRA or ModernBERT"
SIZE = 7  # words of the text that an encoder is tried on
LOOKED = 300  # texts that homogeneity is measured on


def framed(
    encoder: Any, tokenizer: Any, chosen: dict[str, Any], lines: Lines, pair: bool, name: str
) -> tuple[Frame, Homogeneity | None]:
    """The frame with everything decided: where to split, and how many shares there are."""
    settings = dict(chosen)
    given = settings.get("sparsity", Frame().sparsity)
    shares = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if pair and len(shares) == 1:
        shares = (*shares, *shares)
    if not pair and len(shares) == 2:
        raise InputError("Two sparsities are for pairs, and these are single texts: give one.")
    settings["sparsity"] = shares
    if settings.get("encoder") == "gru":
        return Frame.of(settings), None
    depth = len(blocks_of(encoder, name)[1])
    alike = None
    if settings.get("blocks") is None:
        trial = Frame(
            blocks=1, pruning=1, predictor="whole", full_text="predictor", hide=settings.get("hide", "attention")
        )
        assembled(encoder, tokenizer, trial, ("one", "other"), seed=0)  # what can't be split is refused before
        order = np.random.default_rng(4).permutation(len(lines.parts["train"]))
        sample = [lines.parts["train"][k] for k in order[:LOOKED]]
        special = torch.tensor(added_by(tokenizer))
        batches = []
        for _, batch in sorted_batches(sample, pad_of(tokenizer)):
            real = batch["attention_mask"].bool() & ~torch.isin(batch["input_ids"], special)
            takes = inspect.signature(encoder.forward).parameters
            batches.append({**{k: v for k, v in batch.items() if k in takes}, "real": real})
        alike = homogeneity(encoder.eval(), batches)
        settings["blocks"] = split_of(alike, rest=settings.get("predictor", "rest") == "rest")
        progress.report(0, 1, f"the first {settings['blocks']} of {depth} blocks select, by the spread of token states")
    elif settings["blocks"] == 0:
        settings["blocks"] = depth
    frame = Frame.of(defaulted(settings))
    frame.fits(depth, name)
    return frame, alike


def defaulted(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with what follows from the number of blocks."""
    if settings.get("encoder") == "gru" or not isinstance(settings["blocks"], int):
        return settings
    made = {"pruning": min(Frame().pruning, max(1, settings["blocks"] - 1)), **settings}
    if made["pruning"] == made["blocks"]:  # no state stands before the pruning blocks
        made.setdefault("full_text", "predictor")
    return made


def assembled(
    encoder: Any, tokenizer: Any, frame: Frame, labels: Sequence[str], seed: int, base: str = ""
) -> Rationalizer:
    """A rationalizer around an encoder; its heads are a function of the seed."""
    if tokenizer.cls_token_id is None and frame.encoder != "gru":
        raise Unsupported(
            "The tokenizer puts no token in front of a text, so nothing would be left of an empty rationale: use "
            "an encoder such as minilm or BERT."
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if frame.encoder == "gru":
            table = encoder.get_input_embeddings().weight.detach()
            stored = {
                "model_type": Recurrent.TYPE,
                "vocab_size": table.shape[0],
                "embedding_size": table.shape[1],
                "hidden_size": frame.width,
                "pad_token_id": pad_of(tokenizer),
            }
            inner: Any = Recurrent(stored)
            with torch.no_grad():
                inner.words.weight.copy_(table)
        else:
            inner = encoder
        names = dict(enumerate(labels)) if labels else {0: "value"}
        config = RationalizerConfig(
            asdict(frame),
            inner.config.to_dict(),
            special=added_by(tokenizer),
            separator=tokenizer.sep_token_id,
            base=base,
            typed="token_type_ids" in getattr(tokenizer, "model_input_names", ()),
            id2label=names,
            label2id={label: number for number, label in names.items()},
            problem_type="single_label_classification" if labels else "regression",
        )
        made = Rationalizer(config, inner)
        if frame.encoder == "gru" and made.reader is not None:
            for part in towers(made)[1:]:
                part.gru.reset_parameters()
    made = made.float()  # heads and blocks are of one kind, whatever the checkpoint was stored in
    if frame.encoder != "gru":
        check_hiding(made, tokenizer)
    made.requires_grad_(True)
    made.head.offsets.requires_grad_(False)
    for part in towers(made):  # P1: embeddings stay as they are
        part.get_input_embeddings().weight.requires_grad_(False)
        for path, parameter in part.named_parameters():
            if path.startswith("embeddings."):
                parameter.requires_grad_(False)
    return made


def check_hiding(model: Rationalizer, tokenizer: Any) -> None:
    """Refuse an encoder in which hidden tokens would be read: it is tried, not believed."""
    name = type(model.encoder).__name__
    frame = model.frame
    model.frame = replace(frame, tried=1.0)  # of a step of training, every hidden token
    try:
        hides = hidden_stay_hidden(model, tokenizer)
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise Unsupported(f"{name} can't be split into generator and predictor ({reason}): {ENCODERS}.") from error
    finally:
        model.frame = frame
        model.training = False
    if hides is None:
        raise Unsupported(f"{name} reads from left to right only, so it is no encoder: use one such as minilm.")
    if not hides:
        raise Unsupported(
            f"Tokens can't be hidden from {name} (its attention can't be reached, or it reads neighbours in other "
            f"ways), so a rationale would not be all that it reads: {ENCODERS}."
        )


def hidden_stay_hidden(model: Rationalizer, tokenizer: Any) -> bool | None:
    """With the rationale fixed, other words in all other places must not move the answer, in evaluation with and
    without gradients and in training (dropout apart); and a token must see those behind it, as an encoder's do: else
    None."""
    size = getattr(model.encoder.config, "vocab_size", None) or len(tokenizer)
    marks = set(model.config.special)
    ordinary = [k for k in range(size) if k not in marks][: 2 * SIZE]
    if len(ordinary) < 2:
        return True
    ends = [tokenizer.cls_token_id], [i for i in (tokenizer.sep_token_id,) if i is not None]
    one, other = ([ordinary[(k * step) % len(ordinary)] for k in range(SIZE)] for step in (1, 3))
    kept = torch.tensor([[0, *[int(k % 3 == 1) for k in range(SIZE)], *[0 for _ in ends[1]]]])
    mixed = [a if k % 3 == 1 else b for k, (a, b) in enumerate(zip(one, other, strict=True))]
    first, second = (torch.tensor([[*ends[0], *words, *ends[1]]]) for words in (one, mixed))
    model.eval()
    for training, graph in ((False, False), (False, True), (True, True)):
        model.training = training  # of the frame alone: dropout stays off inside
        with torch.set_grad_enabled(graph):
            fixed = kept.to(model.head.linear.weight).requires_grad_(graph)
            one_answer, other_answer = (model(ids, rationale=fixed).logits.detach() for ids in (first, second))
        if not torch.allclose(one_answer, other_answer, rtol=1e-4, atol=1e-5):
            return False
    changed = first.clone()
    changed[0, -2] = other[-1] if other[-1] != one[-1] else ordinary[-1]
    with torch.no_grad():
        before, after = (stretch(model.encoder, 0, 1, {"input_ids": ids}).left[0][0, 1] for ids in (first, changed))
    return None if torch.equal(before, after) else True


def towers(model: Rationalizer) -> list[Any]:
    """The encoders of a model: one, or one more for each predictor that has its own."""
    return [part for part in (model.encoder, model.reader, model.soft_reader) if part is not None]


def room(encoder: Any) -> int:
    """Tokens that an encoder reads at most; some count positions from behind the padding id."""
    limit = getattr(encoder.config, "max_position_embeddings", None) or 512
    return int(limit) - family_of(encoder).offset(encoder.config)
