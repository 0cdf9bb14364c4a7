"""Train the majority-class language from scratch, with or without word dropout (Vafa et al. 2021, section 4.2).

    python recipes/majority.py --out FOLDER                               # standard training
    python recipes/majority.py --out FOLDER --keep "bernoulli(p=0.5)"     # compatible training

A text is seventeen random bits, "=", and the bit that stands there more often. Every batch is drawn anew, so there is
no text to learn by heart; nobody can do better than 2^(17/20) = 1.8025 in perplexity over its twenty predictions. The
model is a GPT-2 of four layers, two heads and 64 numbers per token with learned positions, as in the paper; the mixing
probability of word dropout is 1, as there. Writes a plain GPT2LMHeadModel with its tokenizer, and training.json.
Ctrl-C and the same command again go on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from raison.core import progress
from raison.core.errors import RaisonError
from raison.training.fit import fit, progress_log_lines
from raison.training.fit_settings import FitSettings
from raison.training.seeds import seeded_generator
from raison.training.word_dropout import DropoutSide, draw_keeps, keep_rule_of
from raison.training.word_dropout_attention import (
    attention_keeping_only,
    heads_within_reach,
    word_dropout_attention,
)

BITS = 17
PIECES = ("<s>", "</s>", "0", "1", "=")
START, END, ZERO, ONE, EQUALS = range(len(PIECES))
LENGTH = BITS + 3  # tokens that are read: <s>, the bits, =, the majority
OPTIMUM = 2 ** (BITS / LENGTH)
# of the seed: batches of a run have numbers from 0 up, and the test has this one beside them
HELD = 7


def tokenizer() -> Any:
    """One token for each word; a text starts with <s>."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(
        models.WordLevel({piece: number for number, piece in enumerate(PIECES)}, unk_token="</s>")
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", START)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        model_max_length=LENGTH + 1,
    )


def model(seed: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(PIECES),
            n_positions=LENGTH + 1,
            n_embd=64,
            n_layer=4,
            n_head=2,
            n_inner=256,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=START,
            eos_token_id=END,
        )
    )


def texts(count: int, random: torch.Generator) -> torch.Tensor:
    """[n 21] <s>, bits, =, majority, </s>."""
    bits = torch.randint(0, 2, (count, BITS), generator=random)
    majority = (bits.sum(1) > BITS // 2).long()
    column = lambda token: torch.full((count, 1), token)  # noqa: E731
    return torch.cat(
        [column(START), bits + ZERO, column(EQUALS), majority[:, None] + ZERO, column(END)], 1
    )


def losses(net: Any, ids: torch.Tensor) -> torch.Tensor:
    """[n 20] of every prediction."""
    logits = net(
        input_ids=ids[:, :-1], attention_mask=torch.ones_like(ids[:, :-1]), use_cache=False
    ).logits
    flat = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
    )
    return flat.view(len(ids), -1)


@torch.inference_mode()
def perplexity(net: Any, seed: int, count: int = 2000) -> dict[str, float]:
    """Over all predictions, and the loss at the majority alone, on texts of its own."""
    found = losses(net, texts(count, seeded_generator(seed, HELD, 0)))
    return {"perplexity": float(found.mean().exp()), "majority loss": float(found[:, -2].mean())}


def teach(args: argparse.Namespace) -> None:
    rule = keep_rule_of(args.keep)
    net = model(args.seed)
    heads = heads_within_reach(net, "this model")["self"]
    fixed = torch.arange(LENGTH) == 0  # <s> stands in every context

    def loss(net: Any, ids: torch.Tensor, step: int) -> torch.Tensor:
        side = DropoutSide(torch.ones(len(ids), LENGTH, dtype=torch.bool), heads, fixed)
        keeps = draw_keeps(rule, args.mix, (side,), seed=args.seed, step=step)
        with attention_keeping_only(keeps):
            return losses(net, ids).mean()

    settings = {
        "keep": str(rule.spec()),
        "mix": args.mix,
        "batch": args.batch,
        "lr": args.lr,
        "seed": args.seed,
    }
    fit_settings = FitSettings(
        args.out,
        args.steps,
        settings,
        seed=args.seed,
        betas=(0.9, 0.98),
        warm=0.05,
        every=max(1, args.steps // 20),
    )
    args.out.mkdir(parents=True, exist_ok=True)
    groups = [{"params": list(net.parameters()), "peak": args.lr}]
    feed = lambda step: texts(args.batch, seeded_generator(args.seed, step))  # noqa: E731
    with word_dropout_attention(net), progress.listen(progress_log_lines()):
        done = fit(net, groups, feed, loss, fit_settings, lambda: perplexity(net, args.seed))
    net.save_pretrained(args.out)
    tokenizer().save_pretrained(args.out)
    report = {
        "task": "majority", **settings, "steps": args.steps, "optimum": OPTIMUM, **perplexity(net, args.seed),
        "CPU minutes": round(done.seconds / 60, 1), "history": done.history,
    }  # fmt: skip
    (args.out / "training.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(f"perplexity {report['perplexity']:.4f}, the optimum is {OPTIMUM:.4f}; wrote {args.out}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train the majority-class language from scratch.")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder to write; the same command goes on there"
    )
    parser.add_argument(
        "--keep", default="none", help="word dropout: none, bernoulli(p=0.5), uniform_length"
    )
    parser.add_argument(
        "--mix", type=float, default=1.0, help="share of the steps with word dropout"
    )
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=256, help="texts of a step")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    try:
        teach(parser.parse_args(words))
    except RaisonError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
