"""Train a small GPT-2 with learned positions from scratch, with or without word dropout (for P0 Figure 4).

    python recipes/learned_positions.py --data DATA_DIR --out FOLDER                          # standard training
    python recipes/learned_positions.py --data DATA_DIR --out FOLDER --keep uniform_length    # compatible training

With rotary positions a token that is kept alone looks the same wherever it stands, so P0 Figure 4 needs a model whose
positions are learned. This one has GPT-2's architecture and, as there, a byte-level BPE without a token in front of a
text, in a small size: what the first token of a block predicts is learned from that token alone, what any other one
predicts never is, unless words are dropped. The text is the train part of IMDB and the valid part of WikiText-2;
paragraphs that also stand in WikiText-2's test part, on which the suite P0-figure4 measures, are left out and counted.

Our guess is that repeating comes from copying: a head that looks for what came behind a token before, and writes it,
finds the token itself when nothing else is there. Large models learn to copy from ordinary text; this one would need
many times the text. So the reviews say every few words eight times (--again 0: once). Without that it knows in these
minutes which word follows which and little else, and has no pathology to remove (tried once, with four layers:
f(the | the) < 0.005 at seven positions after 578 steps).

Both commands are one training (training/train_compatibility.py): same text, same steps, same first weights. Writes a
plain GPT2LMHeadModel with its tokenizer, and training.json. Ctrl-C and the same command again go on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import raison
from raison.core import progress
from raison.core.errors import InputError, RaisonError
from raison.core.parameters import check_in_range, check_integer
from raison.core.records import Example
from raison.datasets.open import open_dataset
from raison.datasets.overlap import overlap
from raison.training.fit import progress_log_lines
from raison.training.train_compatibility import train_compatibility

END = "<|endoftext|>"
TRAIN = (
    ("imdb", "train"),
    ("wikitext2", "valid"),
)  # the first partly repeated; of the second, the end is held out
TEST = ("wikitext2", "test")
FEWEST, MOST, TIMES = 2, 5, 8  # words that are said again, and how often they stand there then


def texts(data: Path, count: int, again: float, seed: int) -> tuple[list[Example], int]:
    """What is trained on, and how many paragraphs were left out since they stand in the test part."""
    reviews = [plain(example.text) for example in open_dataset(*TRAIN[0], count, data).examples]
    articles = [plain(example.text) for example in open_dataset(*TRAIN[1], None, data).examples]
    draw = np.random.default_rng(seed)
    said = [repeated(text, draw) if draw.random() < again else text for text in reviews]
    made = [Example(text) for text in [*said, *articles] if text]
    known = set(overlap(made, open_dataset(*TEST, None, data).examples))
    return [example for number, example in enumerate(made) if number not in known], len(known)


def plain(text: str) -> str:
    """Without the marks of a web page, and with one space where there were several."""
    return " ".join(text.replace("<br />", " ").split())


def repeated(text: str, draw: np.random.Generator) -> str:
    """Every few words several times in a row, never the same number of words, so that only copying foretells them."""
    words = text.split()
    made: list[str] = []
    while words:
        few = int(draw.integers(FEWEST, MOST + 1))
        made += words[:few] * TIMES
        words = words[few:]
    return " ".join(made)


def tokenizer(texts: Iterable[str], pieces: int, length: int) -> Any:
    """A BPE over bytes, as GPT-2's: a word and the space before it, and nothing in front of a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if pieces <= len(alphabet):
        raise InputError(
            f"--pieces {pieces} has no room for all bytes: give at least {len(alphabet) + 1}."
        )
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    trainer = trainers.BpeTrainer(
        vocab_size=pieces, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=END, eos_token=END, pad_token=END, model_max_length=length,
        model_input_names=["input_ids", "attention_mask"], clean_up_tokenization_spaces=False,
    )  # fmt: skip


def untrained(vocabulary: int, args: argparse.Namespace) -> Any:
    torch.manual_seed(args.seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary, n_positions=args.length, n_embd=args.width, n_layer=args.layers, n_head=args.heads,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, pad_token_id=0,
        )
    ).eval()  # fmt: skip


def teach(args: argparse.Namespace) -> None:
    check_in_range("again", args.again, 0, 1)
    check_integer("reviews", args.reviews, 1)
    if args.width % args.heads:
        raise InputError(
            f"--width {args.width} can't be shared by {args.heads} heads: give a multiple."
        )
    examples, left_out = texts(args.data, args.reviews, args.again, args.seed)
    pieces = tokenizer((example.text for example in examples), args.pieces, args.length)
    model = raison.load(untrained(len(pieces), args), pieces)
    command = f"python recipes/learned_positions.py --data DATA_DIR --out FOLDER --keep {args.keep}"
    with progress.listen(progress_log_lines()):
        report = train_compatibility(
            model, examples, out=args.out, keep=args.keep, mix=args.mix, lr=args.lr, steps=args.steps,
            length=args.length, batch=args.batch, seed=args.seed, held=0.02, every=max(1, args.steps // 4),
            command=command,
        )  # fmt: skip
    print(
        f"{len(examples)} texts of {' and '.join(' '.join(each) for each in TRAIN)}, without {left_out} that stand in "
        f"{' '.join(TEST)}; perplexity {report['after']['perplexity']:.1f}, of 10 tokens "
        f"{report['after']['perplexity of 10 tokens']:.1f}; wrote {args.out}"
    )


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Train a small GPT-2 with learned positions from scratch."
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of the data sets imdb and wikitext2"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write; the same command goes on there"
    )
    parser.add_argument(
        "--keep", default="none", help="word dropout: none, uniform_length, bernoulli(p=0.5)"
    )
    parser.add_argument(
        "--mix", type=float, default=0.5, help="share of the steps with word dropout"
    )
    parser.add_argument("--reviews", type=int, default=1500, help="reviews that are read, at most")
    parser.add_argument(
        "--again",
        type=float,
        default=1.0,
        help="share of the reviews that say every few words again",
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=32, help="blocks of a step")
    parser.add_argument(
        "--length", type=int, default=64, help="tokens of a block, and positions of the model"
    )
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--pieces", type=int, default=2000, help="of the tokenizer")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    try:
        teach(parser.parse_args(words))
    except RaisonError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
