"""Fine-tuning for partial contexts: a model that is asked about subsets should have seen some (P0 section 4).

    loss = − mean_i log p(y_{i+1} | y_{K<i ∪ {i}})     K drawn by a keep rule with probability `mix`, else everything

Vafa et al. 2021, Rationales for Sequential Predictions. Trained this way, the model's answer for a subset comes near to
the true conditional, so a rationale is about the text and not about how the model stumbles over gaps. The control
`keep="none"` is the same training on the same tokens without dropout.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn

from raison.core.errors import InputError
from raison.core.spec import between, one_of, whole
from raison.models.attention.view import clone
from raison.models.load import load, placed
from raison.training.dropout import COINS, Keeps, Rule, Side, drawn, rule_of
from raison.training.dropout_attention import attending, keeping_only, reach_of
from raison.training.fit import CHECKPOINT, OWN, Course, fit, prepared, saved, writing
from raison.training.lm_data import Feed, Row, blocks, examples_of, joined, named, several, translations
from raison.training.lora import with_lora, write_adapter
from raison.training.seeds import generator

__all__ = ["REPORT", "Setup", "Task", "perplexities", "train_compatibility"]

REPORT = "training.json"
RATES = {True: 5e-4, False: 5e-5}  # with LoRA, and of all weights
LOOKED = 12  # rows on which a run looks at itself
TESTED = 48  # rows on which it is measured before and after
IGNORED = -100


@dataclass(frozen=True)
class Setup:
    """What a run is: everything here makes two runs the same or not."""

    keep: str = "uniform_length"  # the keep rule; "none": plain training, the control
    mix: float = 0.5  # share of the batches that have word dropout
    coins: str = "apart"  # of an encoder-decoder: apart, one coin for each side; one, for both
    lora: int | None = None  # rank; None: all weights are trained
    lr: float | None = None  # peak rate; None: 5e-4 with LoRA, else 5e-5
    steps: int = 300
    length: int = 128  # tokens of a block; the longest source and target of an encoder-decoder
    batch: int = 8  # rows
    accumulate: int = 1  # batches of a step
    schedule: str = "linear"  # linear | constant
    warm: float = 0.05  # share of the steps until the rate is full
    seed: int = 0
    bfloat16: bool = False  # autocast
    own_targets: bool = False  # of an encoder-decoder: learn what it writes itself
    held: float = 0.05  # share of the data that is held out
    subset: int = 10  # tokens of the subsets that perplexity is measured on

    def __post_init__(self) -> None:
        rule_of(self.keep)
        between("mix", self.mix, 0, 1)
        one_of("coins", self.coins, COINS)
        between("held", self.held, 0, 0.9)
        for name, least in (("steps", 1), ("length", 4), ("batch", 1), ("accumulate", 1), ("seed", 0), ("subset", 1)):
            whole(name, getattr(self, name), least)
        if self.lora is not None:
            whole("lora", self.lora, 1)
        if self.lr is not None:
            between("lr", self.lr, 0, 1)

    @property
    def rate(self) -> float:
        return self.lr if self.lr is not None else RATES[self.lora is not None]


def train_compatibility(
    model: Any,
    data: Any,
    *,
    out: str | Path,
    every: int | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    limit: int | None = None,
    tokens: int | None = None,
    half: bool = False,
    save_every: float = 60.0,
    device: str | None = None,
    command: str = "",
    base: str = "",
    **settings: Any,
) -> dict[str, Any]:
    """Train a language model or an encoder-decoder on partial contexts, and write it to the folder `out`.

    `data` is a text file, a data set (its `train` part, unless `split` says otherwise), several of them (`one+another`)
    or a list of texts; for an encoder-decoder pairs, or sources alone with `own_targets=True`. `limit` and, for a
    language model, `tokens` bound what is read of each. Settings are those of `Setup`. The caller's model
    stays as it is; `out` becomes a plain Hugging Face folder, or with `lora` a peft adapter (`half`: in float16), with
    training.json; an adapter says that it is for `base` (default: what `model` names). `every` is the number of steps
    between two looks at the held-out part. The same call goes on where a run was stopped or killed, on any `device`.
    Returns what training.json holds.
    """
    try:
        setup = Setup(**settings)
    except TypeError as error:
        raise InputError(
            f"{str(error).partition(') ')[2] or error}: see raison.training.compatibility.Setup."
        ) from None
    rule, folder = rule_of(setup.keep), Path(out)
    opened = load(model, device=device)
    if opened.task not in ("causal", "seq2seq") or not hasattr(opened, "hf"):
        raise InputError(
            f"{opened.name} does not write text ({opened.task}), so it has no words to predict from subsets: name a "
            "language model or an encoder-decoder."
        )
    prepared(folder, REPORT)
    apart = opened.task == "seq2seq"
    if setup.own_targets and not apart:
        raise InputError("own_targets is for encoder-decoders: a language model learns the text itself.")
    if tokens is not None and (apart or tokens < 1):
        raise InputError("tokens bounds the text of a language model, and is at least 1: use limit for pairs.")
    read = [examples_of(part, split=split, data_dir=data_dir, limit=limit, prose=not apart) for part in several(data)]
    common: dict[str, Any] = {"length": setup.length, "held": setup.held, "batch": setup.batch}
    if apart:
        pairs = [pair for part in read for pair in part]
        material = translations(opened, pairs, **common, own=setup.own_targets, out=folder)
    else:
        material = joined([blocks(opened, part, **common, most=tokens) for part in read])
    learner = learner_of(opened, setup)
    task = Task(learner, opened, rule, setup, reach_of(learner, opened.name), material.lead)
    course = Course(
        out=folder,
        steps=setup.steps,
        settings={**asdict(setup), "keep": str(rule.spec()), "model": opened.name, "data": material.content()},
        seed=setup.seed,
        accumulate=setup.accumulate,
        schedule=setup.schedule,
        warm=setup.warm,
        bfloat16=setup.bfloat16,
        every=max(1, setup.steps // 4) if every is None else every,
        before=True,
        save_every=save_every,
    )
    trained = [p for p in learner.parameters() if p.requires_grad]
    feed = Feed(material.train, setup.batch, setup.seed)
    with attending(learner):
        done = fit(
            learner,
            [{"params": trained, "peak": setup.rate}],
            feed,
            task.loss,
            course,
            lambda: task.measured(material.held[:LOOKED]),
        )
        if half and setup.lora:
            rounded(trained)  # what is measured is what is written
        after = task.measured(material.held[:TESTED])
    plain = widened(clone(opened.hf))
    with attending(plain):
        before = replace(task, learner=plain).measured(material.held[:TESTED])
    report = {
        "what": "compatibility",
        "model": opened.name,
        "data": named(data),
        "split": split,
        "tokens of each": tokens,
        **asdict(setup),
        "keep": str(rule.spec()),
        "lr": setup.rate,
        "counts": {**material.counts, "parameters trained": sum(p.numel() for p in trained)},
        "tokens trained on": tokens_of(feed, setup),
        "before": before,
        "after": after,
        "history": done.history,
        "losses": [round(loss, 5) for loss in done.losses],
        "CPU minutes": round(done.seconds / 60, 1),
        "versions": versions(("torch", "transformers", *(("peft",) if setup.lora else ()))),
        "command": command,
    }
    written(learner, opened, folder, report, half, base or base_of(model, opened))
    return report


def base_of(model: Any, opened: Any) -> str:
    """What an adapter calls the model that it is for, so that `raison.load` finds it again: a name, or the folder."""
    given = isinstance(model, (str, Path)) and Path(model).expanduser().exists()
    return str(Path(model).expanduser().resolve()) if given else str(opened.name)


def learner_of(opened: Any, setup: Setup) -> Any:
    """A copy of the user's model that may be trained: with LoRA it shares the weights, which stay frozen."""
    if setup.lora:
        return with_lora(widened(clone(opened.hf)), setup.lora, seed=setup.seed, name=opened.name)
    copied = widened(copy.deepcopy(opened.hf))
    for module in copied.modules():
        table = "Sinusoidal" in type(module).__name__  # computed, not learned
        for parameter in module.parameters(recurse=False):
            parameter.requires_grad_(not table)  # a merged adapter leaves weights frozen
    return copied


def widened(model: Any) -> Any:
    """float32 where it was less: small updates would be lost."""
    few = next(model.parameters()).dtype in (torch.float16, torch.bfloat16)
    return model.float() if few else model


@torch.no_grad()
def rounded(trained: Sequence[nn.Parameter]) -> None:
    for parameter in trained:
        parameter.copy_(parameter.half().to(parameter.dtype))


def tokens_of(feed: Feed, setup: Setup) -> int:
    """Tokens that the run has seen, each time that it saw them."""
    again = Feed(feed.rows, feed.size, feed.seed)
    return sum(len(row) for part in range(setup.steps * setup.accumulate) for row in again(part))


def versions(names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def written(learner: Any, opened: Any, folder: Path, report: dict[str, Any], half: bool, base: str) -> None:
    """The result; the report comes last, as the sign that all is there. An adapter says that it is for `base`."""
    with writing(folder):
        if report["lora"]:
            report["bytes"] = write_adapter(learner, folder, half=half, name=base)
        else:
            placed(learner, "cpu").save_pretrained(folder)
            for file in folder.glob("*.safetensors"):
                file.chmod(0o644)  # safetensors writes for the owner only
            opened.tokenizer.save_pretrained(folder)
        with saved(folder / REPORT) as place:
            place.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in (CHECKPOINT, OWN):
        (folder / name).unlink(missing_ok=True)


# -- what is learned and measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """How rows become a loss and perplexities, under any keeps."""

    learner: Any  # what runs
    opened: Any  # the raison model: its tokens
    rule: Rule
    setup: Setup
    heads: dict[str, int]  # of each kind of attention
    lead: int = 0  # tokens at the start that are always kept

    @property
    def apart(self) -> bool:
        return self.opened.task == "seq2seq"

    def inputs(self, rows: Sequence[Row]) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Arguments of the model, and what each of its rows should say [b s]."""
        device = next(self.learner.parameters()).device
        pad = self.opened.codec.pad_id
        if not self.apart:
            ids = torch.tensor([row.target for row in rows], device=device)
            # all-ones on purpose: without a mask transformers may look for packed sequences
            return {"input_ids": ids[:, :-1], "attention_mask": torch.ones_like(ids[:, :-1])}, ids[:, 1:]
        source, real = padded([row.source for row in rows], pad)
        begun = self.opened.begun
        target, there = padded([(*begun, *row.target[:-1]) for row in rows], pad)
        labels, _ = padded([(*[IGNORED] * (len(begun) - 1), *row.target) for row in rows], IGNORED)
        named = {
            "input_ids": source,
            "attention_mask": real.long(),
            "decoder_input_ids": target,
            "decoder_attention_mask": there.long(),
        }
        return {name: tensor.to(device) for name, tensor in named.items()}, labels.to(device)

    def sides(self, inputs: dict[str, torch.Tensor]) -> list[Side]:
        """The sequences of a batch, target first."""
        if not self.apart:
            real = inputs["attention_mask"].bool()
            fixed = torch.arange(real.shape[1], device=real.device) < self.lead
            return [Side(real, self.heads["self"], fixed)]
        both = max(self.heads["encoder"], self.heads["cross"])
        return [
            Side(inputs["decoder_attention_mask"].bool(), self.heads["decoder"]),
            Side(inputs["attention_mask"].bool(), both),
        ]

    def surprise(self, inputs: dict[str, torch.Tensor], labels: torch.Tensor, keeps: Keeps | None) -> torch.Tensor:
        """[b s] − log p of each label; 0 where there is none."""
        with keeping_only(keeps):
            logits = self.learner(**inputs, use_cache=False).logits
        flat = nn.functional.cross_entropy(
            logits.float().flatten(0, 1) if logits.dtype != torch.float64 else logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=IGNORED,
            reduction="none",
        )
        return flat.view(labels.shape)

    def loss(self, model: Any, rows: Sequence[Row], part: int) -> torch.Tensor:
        """Mean surprise of a batch, with word dropout if the coin says so."""
        inputs, labels = self.inputs(rows)
        setup, sides = self.setup, self.sides(inputs)
        keeps = drawn(self.rule, setup.mix, sides, seed=setup.seed, step=part, coins=setup.coins)
        return self.surprise(inputs, labels, keeps).sum() / (labels != IGNORED).sum()

    def measured(self, rows: Sequence[Row]) -> dict[str, float]:
        return perplexities(self, rows, subset=self.setup.subset, batch=self.setup.batch, seed=self.setup.seed)


@torch.inference_mode()
def perplexities(
    task: Task, rows: Sequence[Row], *, subset: int = 10, batch: int = 8, seed: int = 0, draws: int = 2
) -> dict[str, float]:
    """Perplexity of held-out rows: of every token given all before it, and of tokens given random subsets.

    A subset has `subset` tokens: the one that the prediction is read from, and the others drawn from all before it (of
    an encoder-decoder, from the source as well; all, where there are fewer). So `subset` − 1 tokens are kept, and only
    the rows behind the last of them are measured: each of them sees exactly such a set, and given that it does, the
    set is a uniform draw of what lies before it. Tokens that are never removed come on top.
    """
    full, partial, counts = 0.0, 0.0, [0, 0]
    for start in range(0, len(rows), batch):
        group = sorted(rows[start : start + batch], key=len)
        inputs, labels = task.inputs(group)
        good = labels != IGNORED
        full += float(task.surprise(inputs, labels, None).cpu().double().sum())
        counts[0] += int(good.sum())
        for draw in range(draws):
            keeps, seen = subsets(task.sides(inputs), subset - 1, generator(seed, start, draw))
            seen = seen.to(labels.device) & good
            partial += float(task.surprise(inputs, labels, keeps)[seen].cpu().double().sum())
            counts[1] += int(seen.sum())
    return {
        "perplexity": math.exp(full / max(1, counts[0])),
        f"perplexity of {subset} tokens": math.exp(partial / max(1, counts[1])),
        f"predictions from {subset} tokens": counts[1],
    }


def subsets(sides: Sequence[Side], size: int, random: torch.Generator) -> tuple[Keeps, torch.Tensor]:
    """Random sets of `size` tokens, and the rows [b s] of the decoder that lie behind all of them.

    The last row of an example is never drawn, so that one row at least is measured.
    """
    target, source = sides[0], sides[1] if len(sides) > 1 else None
    real = target.real.bool().cpu()
    place = torch.arange(real.shape[1])
    fixed = torch.zeros_like(real) if target.fixed is None else target.fixed.cpu().expand_as(real)
    free = real & ~fixed & (place < real.sum(1, keepdim=True) - 1)
    joined = free if source is None else torch.cat([free, source.real.bool().cpu()], dim=1)
    noise = torch.rand(joined.shape, generator=random, dtype=torch.float64).masked_fill(~joined, 2.0)
    chosen = (noise.argsort(1).argsort(1) < size) & joined
    drawn_, beside = chosen[:, : real.shape[1]], chosen[:, real.shape[1] :]
    last = torch.where(drawn_, place, -1).amax(1, keepdim=True)

    def spread(keep: torch.Tensor, side: Side) -> torch.Tensor:
        return keep[:, None].expand(-1, side.heads, -1).to(side.real.device)

    keeps = Keeps(spread(drawn_ | (fixed & real), target), None if source is None else spread(beside, source))
    return keeps, (place > last) & real & ~fixed


def padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[torch.Tensor, torch.Tensor]:
    """[b t] rows filled up on the right, and where they are real."""
    width = max(map(len, rows))
    made = torch.full((len(rows), width), fill)
    real = torch.zeros(len(rows), width, dtype=torch.bool)
    for number, row in enumerate(rows):
        made[number, : len(row)] = torch.tensor(row)
        real[number, : len(row)] = True
    return made, real
