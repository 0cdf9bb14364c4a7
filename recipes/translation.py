"""Train a German-English translator on Multi30k, from scratch.

    python recipes/translation.py --data DATA_DIR --out FOLDER

Writes a plain MarianMTModel (sinusoidal positions, one word table for source, target and output) with its tokenizer
(one byte-level BPE for both languages), and training.json with what was measured. The same command goes on where a run
was stopped or killed. Same seed, same machine, same library versions: same weights, stopped or not. The weights are
those of the last step: dev chooses nothing, the tests are evaluated once.

Vaswani et al. 2017, Attention Is All You Need, in a small size: label smoothing, Adam (0.9, 0.98), batches of so many
tokens, a rate that rises and then falls with the square root of the step. Two deviations: the rate falls to zero over
the last fifth, in place of averaging checkpoints; and a share of the pairs are joined in twos, since every caption is
one sentence and a model that has seen no second sentence can't be asked about one (--joined 0 for none).
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from finetune import REPORT, above_zero, command_line, finish, positive, run, say, settings
from torch.nn.functional import cross_entropy
from transformers import (
    AutoTokenizer,
    GenerationConfig,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
)

from raison.core import progress
from raison.core.errors import InputError, MissingExtra
from raison.datasets.overlap import overlap
from raison.datasets.sources.multi30k_deen import Multi30k
from raison.training.fit import fit, progress_log_lines
from raison.training.fit_settings import FitProgress, FitSettings
from raison.training.training_folder import CHECKPOINT, prepare_training_folder

PAD, START, END = "<pad>", "<s>", "</s>"
POSITIONS = 256  # tokens of a text, at most
LONGEST = 128  # tokens that are written, at most
TESTS = ("test", "test_2017", "test_2017_mscoco", "test_2018")  # the first is that of 2016
SEEN = 250  # dev sentences that are translated after each epoch
NO_LABEL = -100
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")  # written before the first checkpoint
Batch = dict[str, torch.Tensor]
Group = list[tuple[int, ...]]  # a batch: numbers of pairs, those of two pairs where they are joined


# ---- data


class Pair(NamedTuple):
    """A sentence and its translation."""

    german: str
    english: str


class Rows(NamedTuple):
    """The tokens of a pair, each side with </s> at its end."""

    source: list[int]
    target: list[int]


def read(data: Path, split: str) -> list[Pair]:
    return [
        Pair(row.text.strip(), str(row.label).strip())
        for row in Multi30k().read(split, data=data).examples
    ]


def divide(
    train: list[Pair], held: dict[str, list[Pair]]
) -> tuple[list[Pair], list[Pair], dict[str, int]]:
    """Train and dev parts of which neither side stands in a part that comes after them, and what was left out.

    `held` has the tests and `val`. Sentences are the same if their letters and digits are, whatever their case.
    """
    counts = {"read for training": len(train)}
    dev = without(held["val"], {name: held[name] for name in TESTS}, "dev, ", counts)
    kept = without(train, held, "", counts)
    return kept, dev, counts


def without(
    pairs: list[Pair], held: dict[str, list[Pair]], what: str, counts: dict[str, int]
) -> list[Pair]:
    """The pairs of which no side stands in a held part; the others are counted, in each part that they stand in."""
    gone = {
        i for i, pair in enumerate(pairs) if not all(any(map(str.isalnum, side)) for side in pair)
    }
    counts[f"{what}left out, empty"] = len(gone)
    for name, others in held.items():
        for side in Pair._fields:
            found = overlap(
                [getattr(pair, side) for pair in pairs], [getattr(pair, side) for pair in others]
            )
            counts[f"{what}left out, {side} in {name}"] = len(found)
            gone.update(found)
    counts[f"{what}left out in all"] = len(gone)
    return [pair for i, pair in enumerate(pairs) if i not in gone]


# ---- tokens


def make_tokenizer(texts: Iterable[str], pieces: int) -> PreTrainedTokenizerFast:
    """A BPE over bytes, so that no text has unknown tokens: names and words of other domains come in small pieces."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    least = 256 + 3
    if pieces < least:
        raise InputError(f"--pieces {pieces} has no room for all bytes: give at least {least}.")
    own = Tokenizer(models.BPE())
    # the first word has a space in front as all others do, and is the same token as in the middle of a sentence
    own.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    own.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=pieces,
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    own.train_from_iterator(texts, trainer)
    end = own.token_to_id(END)
    framed = processors.TemplateProcessing(
        single=f"$A {END}", pair=f"$A $B {END}", special_tokens=[(END, end)]
    )
    own.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), framed])
    return PreTrainedTokenizerFast(
        tokenizer_object=own,
        pad_token=PAD,
        bos_token=START,
        eos_token=END,
        model_max_length=POSITIONS,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def encode(tokenizer: Any, pairs: Sequence[Pair]) -> list[Rows]:
    sides = [
        tokenizer([getattr(pair, side) for pair in pairs])["input_ids"] for side in Pair._fields
    ]
    return [Rows(*row) for row in zip(*sides, strict=True)]


def joined(rows: Sequence[Rows]) -> Rows:
    """Several pairs as one, as the tokenizer makes it of their texts with a space between: one </s>, at the end."""
    return Rows(
        *([i for row in rows[:-1] for i in row[side][:-1]] + rows[-1][side] for side in (0, 1))
    )


# ---- batches


def plan(rows: Sequence[Rows], tokens: int, epochs: float, share: float, seed: int) -> list[Group]:
    """The pairs of every step, a function of the seed only: a run that goes on needs no other memory."""
    made: list[Group] = []
    for epoch in range(math.ceil(epochs)):
        generator = torch.Generator().manual_seed(seed * 10_007 + epoch)
        groups = epoch_of(rows, tokens, share, generator)
        made += groups[: max(1, round((epochs - epoch) * len(groups)))]
    return made


def epoch_of(
    rows: Sequence[Rows], tokens: int, share: float, generator: torch.Generator
) -> list[Group]:
    """Every pair once, in batches of like length and of at most so many tokens of both sides, padding counted."""
    order = torch.randperm(len(rows), generator=generator).tolist()
    twos = int(share * len(order) / 2)
    items = [tuple(order[2 * i : 2 * i + 2]) for i in range(twos)] + [
        (i,) for i in order[2 * twos :]
    ]
    items = [
        item
        for item in items
        if all(sum(len(rows[i][side]) for i in item) <= POSITIONS for side in (0, 1))
    ]
    sizes = {
        item: tuple(sum(len(rows[i][side]) for i in item) for side in (0, 1)) for item in items
    }
    # The order before sorting is random and sorting is stable: batches differ in every epoch.
    items.sort(key=lambda item: sizes[item])
    groups: list[Group] = []
    widest = (0, 0)
    for item in items:
        grown = max(widest[0], sizes[item][0]), max(widest[1], sizes[item][1])
        if groups and (len(groups[-1]) + 1) * sum(grown) <= tokens:
            groups[-1].append(item)
            widest = grown
        else:
            groups.append([item])
            widest = sizes[item][0], sizes[item][1]
    return [groups[i] for i in torch.randperm(len(groups), generator=generator).tolist()]


def collate(rows: Sequence[Rows], pad: int, start: int) -> Batch:
    """Padded on the right; the decoder reads the target one token late."""

    def padded(lists: Sequence[list[int]], fill: int) -> torch.Tensor:
        width = max(map(len, lists))
        return torch.tensor([ids + [fill] * (width - len(ids)) for ids in lists])

    return {
        "input_ids": padded([row.source for row in rows], pad),
        "attention_mask": padded([[1] * len(row.source) for row in rows], 0),
        "decoder_input_ids": padded([[start, *row.target[:-1]] for row in rows], pad),
        "labels": padded([row.target for row in rows], NO_LABEL),
    }


# ---- model


def make_model(tokenizer: Any, args: argparse.Namespace) -> MarianMTModel:
    if args.width % args.heads or args.width % 2:
        raise InputError(
            f"--width {args.width} is not an even multiple of --heads {args.heads}: change one of them."
        )
    both = {
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in (
            ("layers", args.layers),
            ("attention_heads", args.heads),
            ("ffn_dim", args.inner),
        )
    }
    special = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "decoder_start_token_id": tokenizer.bos_token_id,
    }
    config = MarianConfig(
        vocab_size=len(tokenizer),
        decoder_vocab_size=len(tokenizer),
        d_model=args.width,
        max_position_embeddings=POSITIONS,
        activation_function="relu",
        dropout=args.dropout,
        # Attention is trained without dropout, whose random numbers would take a tenth of the time.
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=args.width**-0.5,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        forced_eos_token_id=None,
        **both,
        **special,
    )
    model = MarianMTModel(config)
    # At this length the plain products are faster than the fused kernel, whose backward pass is slow in bfloat16.
    model.set_attn_implementation("eager")
    model.generation_config = GenerationConfig(max_new_tokens=LONGEST, num_beams=1, **special)
    return model


def losses(model: Any, batch: Batch, *, smoothing: float, reduction: str = "mean") -> torch.Tensor:
    """Cross-entropy of the target tokens; the vocabulary is scored only where there is one (final_logits_bias is 0)."""
    told = {name: batch[name] for name in batch if name != "labels"}
    there = batch["labels"] != NO_LABEL  # [b m]
    logits = model.lm_head(model.model(**told, use_cache=False).last_hidden_state[there])
    return cross_entropy(
        logits.float(), batch["labels"][there], label_smoothing=smoothing, reduction=reduction
    )


@torch.inference_mode()
def perplexity(model: Any, rows: Sequence[Rows], pad: int, start: int, size: int = 64) -> float:
    model.eval()
    order = sorted(range(len(rows)), key=lambda i: len(rows[i].target))
    parts = [[rows[i] for i in order[k : k + size]] for k in range(0, len(order), size)]
    total = sum(
        losses(model, collate(p, pad, start), smoothing=0.0, reduction="sum").item() for p in parts
    )
    return math.exp(total / sum(len(row.target) for row in rows))


@torch.inference_mode()
def translate(
    model: Any, tokenizer: Any, texts: Sequence[str], *, beams: int = 1, size: int = 64
) -> list[str]:
    """What the model writes, in float32: greedily, or by a search with so many beams.

    It may write ten tokens more than twice as many as it reads; one that has learned little would write on for long.
    """
    model.eval()
    ids = tokenizer(list(texts))["input_ids"]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    said = [""] * len(ids)
    for k in range(0, len(order), size):
        part = order[k : k + size]
        batch = tokenizer.pad({"input_ids": [ids[i] for i in part]}, return_tensors="pt")
        longest = min(LONGEST, 2 * len(ids[part[-1]]) + 10)
        written = model.generate(**batch, num_beams=beams, max_new_tokens=longest)
        for i, text in zip(
            part, tokenizer.batch_decode(written, skip_special_tokens=True), strict=True
        ):
            said[i] = text
    return said


def bleu(said: Sequence[str], pairs: Sequence[Pair]) -> float:
    """Corpus BLEU as sacrebleu has it by default: with case, its own tokens."""
    from sacrebleu.metrics import BLEU

    return round(BLEU().corpus_score(list(said), [[pair.english for pair in pairs]]).score, 2)


# ---- training


@dataclass(frozen=True)
class Falling(FitSettings):
    """A rate that rises, falls with the square root of the step, and in the last steps falls to zero."""

    rise: int = 800  # steps until the rate is full
    cool: float = 0.2  # share of the steps over which it falls to zero

    def rate(self, step: int) -> float:
        """min(s / rise, √(rise / s)) with s counted from 1, times the share of the last steps that is left."""
        left = (self.steps - step) / max(1.0, self.cool * self.steps)
        return min((step + 1) / self.rise, math.sqrt(self.rise / (step + 1))) * min(1.0, left)


def train(
    model: MarianMTModel,
    feed: Callable[[int], Batch],
    fit_settings: Falling,
    peak: float,
    look: Callable[[], dict[str, Any]],
) -> FitProgress:
    """Train in place, from the checkpoint if there is one."""
    groups = [{"params": list(model.parameters()), "peak": peak}]
    with progress.listen(progress_log_lines()):
        return fit(
            model,
            groups,
            feed,
            lambda model, batch, step: losses(model, batch, smoothing=0.1),
            fit_settings,
            look,
        )


# ---- command


def prepare(args: argparse.Namespace) -> None:
    """One thread, exact repetition, quiet libraries, a folder to write to; what is missing is told before training."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    # nothing here reads what it has not written
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if importlib.util.find_spec("sacrebleu") is None:
        raise MissingExtra("sacrebleu", "bleu", "The BLEU of a translator")
    if not args.data.is_dir():
        raise InputError(
            f"There is no folder {args.data}: give the folder of the data sets as --data."
        )
    prepare_training_folder(args.out, REPORT, early=TOKENIZER)


def tokenizer_of(args: argparse.Namespace, pairs: Sequence[Pair]) -> Any:
    """The tokenizer of the run that is gone on with, else a new one, which is saved at once."""
    if (args.out / CHECKPOINT).exists() and (args.out / "tokenizer.json").exists():
        return AutoTokenizer.from_pretrained(args.out)
    made = make_tokenizer((text for pair in pairs for text in pair), args.pieces)
    made.save_pretrained(args.out)
    return made


def teach(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    prepare(args)
    held = {name: read(args.data, name) for name in (*TESTS, "val")}
    pairs, dev, counts = divide(read(args.data, "train"), held)
    pairs = pairs[: args.limit]
    if not pairs or not dev or not held["test"]:
        raise InputError("No pair is left for training, dev or test: use the published files.")
    tokenizer = tokenizer_of(args, pairs)
    torch.manual_seed(args.seed)
    model = make_model(tokenizer, args)
    model.config.save_pretrained(args.out)
    pad, start = tokenizer.pad_token_id, tokenizer.bos_token_id
    rows, dev_rows = encode(tokenizer, pairs), encode(tokenizer, dev)
    for name, texts in (("dev", dev_rows), ("train", rows)):
        counts[f"{name}, longer than {POSITIONS} tokens"] = sum(
            max(map(len, row)) > POSITIONS for row in texts
        )
    dev_rows = [row for row in dev_rows if max(map(len, row)) <= POSITIONS]
    steps = plan(rows, args.tokens, args.epochs, args.joined, args.seed)
    total = len(steps)
    if not total:
        raise InputError(f"Every pair is longer than {POSITIONS} tokens: give more --pieces.")
    told = settings(args) | {"number of steps": total, "number of pairs": len(pairs)}
    fit_settings = Falling(
        out=args.out,
        steps=total,
        settings=told,
        seed=args.seed,
        decay=0.0,
        betas=(0.9, 0.98),
        bfloat16=args.bfloat16,
        every=max(1, round(total / args.epochs)),
        rise=args.warm,
    )
    sizes = {"train": len(pairs), "dev": len(dev), **{name: len(held[name]) for name in TESTS}}
    weights = sum(p.numel() for p in model.parameters())
    say(f"pairs {sizes}, {len(tokenizer)} pieces, {weights} weights, {total} steps; {counts}")

    def feed(step: int) -> Batch:
        return collate([joined([rows[i] for i in item]) for item in steps[step]], pad, start)

    def look() -> dict[str, float]:
        some = dev[:SEEN]
        return {
            "perplexity": round(perplexity(model, dev_rows, pad, start), 3),
            "BLEU": bleu(translate(model, tokenizer, [pair.german for pair in some]), some),
        }

    done = train(model, feed, fit_settings, args.lr, look)
    say("translating the tests")
    cpu = time.process_time()
    parts = {"dev": dev, **{name: held[name] for name in TESTS}}
    greedy = {
        name: bleu(translate(model, tokenizer, [p.german for p in parts[name]]), parts[name])
        for name in parts
    }
    german = [pair.german for pair in held["test"]]
    report = {
        "task": "translation, German to English",
        "class": "MarianMTModel",
        "weights": weights,
        "BLEU, greedy": greedy,
        "BLEU, 5 beams": {"test": bleu(translate(model, tokenizer, german, beams=5), held["test"])},
        "dev perplexity": round(perplexity(model, dev_rows, pad, start), 3),
        "pairs": sizes,
        "overlap": counts,
        "seed": args.seed,
        "steps": total,
        f"after each epoch (BLEU of {min(SEEN, len(dev))} sentences)": done.history,
        "CPU minutes of training": round(done.seconds / 60, 1),
        "CPU minutes of testing": round((time.process_time() - cpu) / 60, 1),
        "command": command_line("translation.py", parser, args),
    }
    finish(args.out, model, tokenizer, report)


def share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 up and below 1")
    return value


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Train a German-English translator on Multi30k, from scratch."
    )
    parser.set_defaults(base=None)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write; the same command goes on there"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=positive, help="pairs to train on (all)")
    parser.add_argument("--epochs", type=above_zero, default=18)
    parser.add_argument(
        "--tokens", type=positive, default=4096, help="tokens of both sides in a batch"
    )
    parser.add_argument(
        "--joined", type=share, default=0.1, help="share of the pairs that are joined in twos"
    )
    parser.add_argument("--pieces", type=positive, default=8000, help="size of the vocabulary")
    parser.add_argument("--width", type=positive, default=256)
    parser.add_argument(
        "--inner", type=positive, default=512, help="width inside the feed-forward blocks"
    )
    parser.add_argument(
        "--layers", type=positive, default=3, help="of the encoder, and of the decoder"
    )
    parser.add_argument("--heads", type=positive, default=4)
    parser.add_argument("--dropout", type=share, default=0.3)
    parser.add_argument("--lr", type=above_zero, default=1.5e-3, help="peak rate")
    parser.add_argument(
        "--warm", type=positive, default=800, help="steps until the rate is at its peak"
    )
    parser.add_argument(
        "--bfloat16",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="train in bfloat16 where it is safe: half the time on CPUs that have it, far more on others",
    )
    args = parser.parse_args(words)
    return run(lambda: teach(parser, args))


if __name__ == "__main__":
    sys.exit(main())
