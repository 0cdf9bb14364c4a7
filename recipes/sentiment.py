"""Train the sentiment adapter that raison ships: a LoRA on all-MiniLM-L6-v2, from SST-2.

    python recipes/sentiment.py --data DATA_DIR --base MINILM_DIR --out FOLDER

Reads DATA_DIR/sst2/{train,dev,test}.tsv.gz and the phrases of DATA_DIR/sst_trees/train.txt.gz. Same seed,
same machine, same library versions: same file, byte for byte. The checkpoint is chosen on dev; test is read
for the overlap counts and evaluated once, at the end, on what users get: float16 tensors, merged.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import peft
import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer

from raison.models.lora_merge import merge_adapter
from raison.models.mean_pooled_bert import MeanPooledBert

LABELS = ["negative", "positive"]
MAX_TOKENS = 128
# A text and how positive it is: 0 or 1 in SST-2, between the two with --graded.
Example = tuple[str, float]
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
# Soft targets set by hand for the levels of the trees (2, neutral, is left out): they tell "good" from
# "superb", which the two labels of SST-2 do not, and keep the model from being sure of everything.
GRADES = {0: 0.05, 1: 0.2, 3: 0.8, 4: 0.95}
TREE_ESCAPES = {"-lrb-": "(", "-rrb-": ")", "``": '"', "''": '"'}


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- data


def normal(text: str) -> str:
    """The form in which two sentences count as the same: lower case, letters and digits only. ASCII only,
    since the SST-2 files have lost the accented letters that the trees still have."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def read_split(data: Path, split: str) -> list[Example]:
    with gzip.open(data / "sst2" / f"{split}.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").rsplit("\t", 1) for line in lines if line.strip()]
    return [(text, float(label)) for text, label in rows]


def nodes(tree: str) -> Iterator[tuple[int, list[str]]]:
    """(label, words) of every node of one labelled tree, the root last."""
    stack: list[tuple[int, list[str]]] = []
    for opened, closed, word in re.findall(r"\((\d) ?|(\))|([^\s()]+)", tree):
        if opened:
            stack.append((int(opened), []))
        elif word:
            word = word.lower().replace("\\/", "/")
            stack[-1][1].append(TREE_ESCAPES.get(word, word))
        elif closed:
            label, words = stack.pop()
            if stack:
                stack[-1][1].extend(words)
            yield label, words


def read_levels(data: Path) -> dict[str, tuple[str, int]]:
    """The phrases of the training trees that are not neutral, each once, with their level, by normal form."""
    found: dict[str, tuple[str, int]] = {}
    with gzip.open(data / "sst_trees" / "train.txt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            for label, words in nodes(line):
                text = " ".join(words)
                key = normal(text)
                if label != 2 and key:
                    found.setdefault(key, (text, label))
    return found


def grade(examples: list[Example], levels: dict[str, tuple[str, int]]) -> list[Example]:
    """The examples with graded targets, where the trees and SST-2 agree on the side."""
    graded = [
        (text, GRADES.get(levels.get(normal(text), ("", 2))[1], label)) for text, label in examples
    ]
    return [
        (text, new if (new > 0.5) == (old > 0.5) else old)
        for (text, new), (_, old) in zip(graded, examples, strict=True)
    ]


def training_set(
    splits: dict[str, list[Example]],
    args: argparse.Namespace,
) -> tuple[list[Example], list[Example], dict[str, int]]:
    """Sentences and phrases to train on, no sentence of dev or test among them; the counts of overlap."""
    seen = {name: {normal(text) for text, _ in rows} for name, rows in splits.items()}
    held_out = seen["dev"] | seen["test"]
    levels = read_levels(args.data) if args.phrases or args.graded else {}
    sentences = [row for row in splits["train"] if normal(row[0]) not in held_out]
    # A training sentence is itself a phrase of its tree, and already there.
    taken = held_out | seen["train"]
    phrases = [
        (text, float(level > 2))
        for key, (text, level) in levels.items()
        if args.phrases and key not in taken
    ]
    overlap = {
        f"train in {name}": sum(normal(text) in seen[name] for text, _ in splits["train"])
        for name in ("dev", "test")
    }
    overlap["dev in test"] = sum(normal(text) in seen["test"] for text, _ in splits["dev"])
    if args.phrases:
        overlap["phrases in dev or test"] = len(held_out & levels.keys())
    if args.graded:
        sentences, phrases = grade(sentences, levels), grade(phrases, levels)
    return sentences, phrases, overlap


def make_batches(
    tokenizer,
    examples: list[Example],
    size: int,
    generator: torch.Generator | None = None,
) -> list[Batch]:
    """Batches of like length (little padding); with a generator, in random composition and order."""
    ids = tokenizer([text for text, _ in examples], truncation=True, max_length=MAX_TOKENS)[
        "input_ids"
    ]
    length = [len(row) for row in ids]
    if generator is None:
        order = sorted(range(len(ids)), key=length.__getitem__)
    else:
        # Sorting within pools of fifty batches keeps the padding small and the batches different every epoch.
        order = torch.randperm(len(ids), generator=generator).tolist()
        pools = [order[i : i + 50 * size] for i in range(0, len(order), 50 * size)]
        order = [i for pool in pools for i in sorted(pool, key=length.__getitem__)]
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    if generator is not None:
        groups = [groups[i] for i in torch.randperm(len(groups), generator=generator).tolist()]
    return [collate([ids[i] for i in group], [examples[i][1] for i in group]) for group in groups]


def collate(rows: list[list[int]], labels: list[float]) -> Batch:
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    return ids, mask, torch.tensor(labels)


# ---- model


def wrap(base: Path, args: argparse.Namespace) -> peft.PeftModel:
    model = MeanPooledBert.from_pretrained(base, num_labels=len(LABELS))
    config = peft.LoraConfig(
        r=args.rank,
        lora_alpha=args.alpha,
        lora_dropout=args.dropout,
        target_modules=args.targets.split(","),
        modules_to_save=["classifier"],
    )
    return peft.get_peft_model(model, config)


@torch.inference_mode()
def evaluate(model: torch.nn.Module, batches: list[Batch]) -> tuple[float, float]:
    """Accuracy and mean loss."""
    model.eval()
    logits = torch.cat(
        [model(input_ids=ids, attention_mask=mask).logits for ids, mask, _ in batches]
    )
    gold = torch.cat([gold for _, _, gold in batches]).long()
    return (logits.argmax(-1) == gold).double().mean().item(), cross_entropy(logits, gold).item()


class Average:
    """A running mean of the trained weights. Dev has 872 sentences, so single checkpoints jump by a point
    from chance alone; the mean of the recent ones is steadier."""

    def __init__(self, parameters: list[torch.nn.Parameter], decay: float):
        self.parameters, self.decay, self.steps = parameters, decay, 0
        self.mean = [p.detach().clone() for p in parameters]

    @torch.no_grad()
    def update(self) -> None:
        self.steps += 1
        # The early bound forgets the initial weights, of which half are zero.
        keep = min(self.decay, self.steps / (self.steps + 10))
        for mean, parameter in zip(self.mean, self.parameters, strict=True):
            mean.lerp_(parameter, 1 - keep)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the mean and the model's weights; a second call undoes it."""
        for mean, parameter in zip(self.mean, self.parameters, strict=True):
            kept = parameter.clone()
            parameter.copy_(mean)
            mean.copy_(kept)


# ---- training


def schedule(step: int, total: int, warm: float = 0.06) -> float:
    rise = max(1, int(warm * total))
    return (step + 1) / rise if step < rise else (total - step) / max(1, total - rise)


def stream(
    tokenizer,
    sentences: list[Example],
    phrases: list[Example],
    args: argparse.Namespace,
) -> Iterator[Batch]:
    """Endless training batches; each epoch has every sentence and the next share of the phrases."""
    generator = torch.Generator().manual_seed(args.seed)
    order: list[int] = []
    share = int(len(phrases) * args.phrase_share)
    while True:
        while len(order) < share:
            order += torch.randperm(len(phrases), generator=generator).tolist()
        chosen, order = order[:share], order[share:]
        yield from make_batches(
            tokenizer, sentences + [phrases[i] for i in chosen], args.batch, generator
        )


def train(
    model: peft.PeftModel,
    batches: Iterator[Batch],
    dev: list[Batch],
    total: int,
    per_epoch: int,
    args: argparse.Namespace,
) -> None:
    """Train in place; the model ends with the averaged weights that were best on dev."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=args.lr, weight_decay=args.weight_decay)
    average = Average(parameters, args.decay)
    every = max(1, round(per_epoch * args.part))
    best, kept, start = (-1.0, 0.0), None, time.monotonic()
    for step in range(total):
        model.train()
        ids, mask, gold = next(batches)
        logits = model(input_ids=ids, attention_mask=mask).logits
        loss = cross_entropy(
            logits, torch.stack([1 - gold, gold], -1), label_smoothing=args.smoothing
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = args.lr * schedule(step, total)
        optimizer.step()
        optimizer.zero_grad()
        average.update()
        done = step + 1
        if done % every == 0 or done == total:
            average.swap()
            right, dev_loss = evaluate(model, dev)
            # Accuracy decides; among equals, which are frequent with 872 sentences, the lower loss.
            if (right, -dev_loss) > best:
                best, kept = (right, -dev_loss), [p.detach().clone() for p in parameters]
            average.swap()
            spent = time.monotonic() - start
            say(
                f"epoch {done / per_epoch:5.2f}  step {done}/{total}  loss {loss.item():.3f}  "
                f"dev {right:.4f} (loss {dev_loss:.4f})  best {best[0]:.4f}  "
                f"{spent:.0f} s, {spent / done * (total - done):.0f} s left"
            )
    with torch.no_grad():
        for parameter, value in zip(parameters, kept, strict=True):
            parameter.copy_(value)


# ---- output


def write_adapter(model: peft.PeftModel, out: Path) -> None:
    """The peft folder, written here rather than by peft: float16, no local path, lists in fixed order."""
    out.mkdir(parents=True, exist_ok=True)
    tensors = {
        k: v.half().contiguous() for k, v in sorted(peft.get_peft_model_state_dict(model).items())
    }
    save_file(tensors, out / "adapter_model.safetensors", metadata={"format": "pt"})
    (out / "adapter_model.safetensors").chmod(
        0o644
    )  # safetensors writes for the owner only; this one is shipped
    config = model.peft_config["default"].to_dict()
    config |= {"base_model_name_or_path": "all-MiniLM-L6-v2", "inference_mode": True}
    config = {
        key: sorted(value) if isinstance(value, set) else value for key, value in config.items()
    }
    write_json(out / "adapter_config.json", dict(sorted(config.items())) | {"peft_type": "LORA"})


def write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def command_line(parser: argparse.ArgumentParser, args: argparse.Namespace) -> str:
    """This run's command with generic paths."""
    words = ["python recipes/sentiment.py --data DATA_DIR --base MINILM_DIR --out FOLDER"]
    for name, value in vars(args).items():
        if name in ("data", "base", "out") or (
            value == parser.get_default(name) and name != "seed"
        ):
            continue
        flag = name.replace("_", "-")
        words.append(
            {True: f"--{flag}", False: f"--no-{flag}"}[value]
            if isinstance(value, bool)
            else f"--{flag} {value}"
        )
    return " ".join(words)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with sst2/ (and sst_trees/)"
    )
    parser.add_argument("--base", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0)
    switch = argparse.BooleanOptionalAction
    parser.add_argument(
        "--phrases", action=switch, default=True, help="also train on phrases of train trees"
    )
    parser.add_argument(
        "--graded", action=switch, default=True, help="soft targets from these trees' levels"
    )
    parser.add_argument(
        "--phrase-share", type=float, default=0.4, help="share of the phrases per epoch"
    )
    parser.add_argument(
        "--targets", default="query,key,value,dense", help="modules that get a LoRA"
    )
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--epochs", type=float, default=2.5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument(
        "--dropout", type=float, default=0.0, help="before each LoRA, beside the base's"
    )
    parser.add_argument("--smoothing", type=float, default=0.0, help="label smoothing")
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument(
        "--decay", type=float, default=0.995, help="of the running mean of the weights"
    )
    parser.add_argument(
        "--part", type=float, default=0.25, help="evaluate on dev each such part of an epoch"
    )
    parser.add_argument(
        "--dev-only", action="store_true", help="leave test alone: for choosing settings"
    )
    return parser


def main() -> None:
    parser = make_parser()
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    # The report of the head missing from the base is no news here, and would drown the progress lines.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    splits = {name: read_split(args.data, name) for name in ("train", "dev", "test")}
    sentences, phrases, overlap = training_set(splits, args)
    tokenizer = AutoTokenizer.from_pretrained(args.base)
    dev = make_batches(tokenizer, splits["dev"], 64)
    per_epoch = -(-(len(sentences) + int(len(phrases) * args.phrase_share)) // args.batch)
    total = max(1, round(args.epochs * per_epoch))
    model = wrap(args.base, args)
    say(f"{len(sentences)} sentences, {len(phrases)} phrases, {total} steps, overlap {overlap}")
    train(model, stream(tokenizer, sentences, phrases, args), dev, total, per_epoch, args)
    write_adapter(model, args.out)

    shipped = merge_adapter(
        MeanPooledBert.from_pretrained(args.base, num_labels=len(LABELS)), args.out
    )
    result = {"dev accuracy": round(evaluate(shipped, dev)[0], 4)}
    if not args.dev_only:
        result["test accuracy"] = round(
            evaluate(shipped, make_batches(tokenizer, splits["test"], 64))[0], 4
        )
    recipe = {
        "labels": LABELS,
        "base": "all-MiniLM-L6-v2",
        "pooling": "mean",
        **result,
        "train sentences": len(sentences),
        "train phrases": len(phrases),
        "seed": args.seed,
        "overlap": overlap,
        "command": command_line(parser, args),
        "versions": {m.__name__: m.__version__ for m in (torch, transformers, peft)},
    }
    write_json(args.out / "recipe.json", recipe)
    print(
        json.dumps(
            {
                **result,
                "overlap": overlap,
                "bytes": (args.out / "adapter_model.safetensors").stat().st_size,
            }
        )
    )


if __name__ == "__main__":
    main()
