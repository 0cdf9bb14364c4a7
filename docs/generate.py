"""Write the tables that describe the code from the code itself.

python docs/generate.py            # rewrite docs/reference.md
python docs/generate.py --check    # fail if it is out of date (the tests do this)
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

PAGE = Path(__file__).resolve().parent / "reference.md"
MARK = {True: "yes", False: "no"}


def methods_table() -> list[str]:
    from raison.core.registry import methods

    rows = [
        "| method | what it says | needs | signed | words from tokens | source |",
        "|---|---|---|---|---|---|",
    ]
    for name in methods:
        entry = methods[name]
        about = entry.__doc__.strip().splitlines()[0]
        made = methods.build(name)
        gather = "on units" if made.axis == "unit" else made.aggregation
        needs = ", ".join(sorted(made.needs)) or "nothing"
        rows.append(
            f"| `{name}` | {about} | {needs} | {MARK[made.signed]} | {gather} | {entry.paper or '–'} |"
        )
    return rows


def searches_table() -> list[str]:
    from dataclasses import fields

    from raison.core.registry import searches

    rows = ["| search | what it does | parameters |", "|---|---|---|"]
    for name in searches:
        entry = searches[name]
        params = ", ".join(
            f"`{f.name}={f.default}`" for f in fields(entry) if f.name != "sufficient"
        )
        rows.append(f"| `{name}` | {entry.__doc__.strip().splitlines()[0]} | {params} |")
    return rows


def rules_table() -> list[str]:
    from raison.core.registry import rules

    rows = ["| rule | a context is enough when |", "|---|---|"]
    return rows + [
        f"| `{rules[name]().spec()}` | {rules[name].__doc__.strip().splitlines()[0]} |"
        for name in rules
    ]


def metrics_table() -> list[str]:
    from raison.core.registry import metrics

    better = {"higher": "more", "lower": "less", None: "–"}
    rows = [
        "| metric | what it says | numbers | better | range | needs | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in metrics:
        entry = metrics[name]
        about = entry.__doc__.strip().splitlines()[0]
        keys = ", ".join(f"`{key.name}`" for key in entry.keys)
        directions = " / ".join(dict.fromkeys(better[key.direction] for key in entry.scalar_keys()))
        needs = ", ".join(sorted(entry.needs)) or "nothing"
        first = entry.keys[0]
        values = limits(first.range.low, first.range.high)
        if first.range_of_probabilities is not None:
            of_probabilities = limits(
                first.range_of_probabilities.low, first.range_of_probabilities.high
            )
            values = f"{of_probabilities} where the model gives probabilities, else {values}"
        rows.append(
            f"| `{name}` | {about} | {keys} | {directions} | {values} | {needs} | {entry.paper or '–'} |"
        )
    return rows


def limits(least: float, most: float) -> str:
    if math.isinf(least) and math.isinf(most):
        return "any number"
    written = [f"{end:g}".replace("-", "−").replace("inf", "∞") for end in (least, most)]
    return " to ".join(written)


def datasets_table() -> list[str]:
    from raison.core.registry import datasets

    rows = ["| data set | what it is | task | parts | human rationales |", "|---|---|---|---|---|"]
    for name in datasets:
        made = datasets.build(name)
        about = type(made).__doc__.strip().splitlines()[0]
        rows.append(
            f"| `{name}` | {about} | {made.task} | {', '.join(made.splits)} | {MARK[bool(made.gold)]} |"
        )
    return rows


def keep_rules_table() -> list[str]:
    from dataclasses import fields

    from raison.training.word_dropout import keep_rules

    rows = ["| rule | what a pass of the training may see | parameters |", "|---|---|---|"]
    for name in keep_rules:
        entry = keep_rules[name]
        params = ", ".join(f"`{f.name}={f.default}`" for f in fields(entry)) or "none"
        rows.append(f"| `{name}` | {entry.__doc__.strip().splitlines()[0]} | {params} |")
    return rows


def suites_table() -> list[str]:
    from raison.studies.reproduce.suite import suites

    rows = ["| suite | what | in the paper | models that a recipe makes |", "|---|---|---|---|"]
    for name, suite in suites().items():
        made = (
            ", ".join(dict.fromkeys(f"`{run.model}`" for run in suite.runs if run.recipe)) or "none"
        )
        rows.append(f"| `{name}` | {suite.title} | {suite.paper} | {made} |")
    return rows


@cache
def probed(family: str, task: str) -> Any:
    """A tiny random model; looking at it takes longer than making it."""
    from raison.testing import tiny_model

    return tiny_model(family, task)


def families_table() -> list[str]:
    """Every family with a tiny random model: what the load probe found, not what we hope."""
    from raison.core.registry import families
    from raison.testing import FAMILIES

    tiny = [name for name in families if name in FAMILIES]
    rows = [
        "| family | tasks | offers | removals (default first) | delete = mask | shares prefixes | notes |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in tiny:
        models = [probed(name, task) for task in FAMILIES[name]]
        offers = sorted(frozenset.intersection(*(m.offers for m in models)))
        removals = [r for r in models[0].removals if all(r in m.removals for m in models)]
        exact = all("delete" in m.removals for m in models)
        rows.append(
            f"| {name} | {', '.join(FAMILIES[name])} | {', '.join(offers)} | {', '.join(removals)} | "
            f"{MARK[exact]} | {MARK[any(m.shares_prefixes for m in models)]} | {families[name].note} |"
        )
    return rows


def works_table() -> list[str]:
    """Methods × families × tasks, by what the load probe found: every cell is run by tests/test_contracts.py."""
    from raison.core.registry import methods
    from raison.testing import FAMILIES

    families = sorted(FAMILIES)
    letters = {"classification": "c", "tagging": "t", "qa": "q", "causal": "l", "seq2seq": "s"}
    offers = {
        family: {task: probed(family, task).offers for task in FAMILIES[family]}
        for family in families
    }
    rows = [f"| method | {' | '.join(families)} |", "|---" * (1 + len(list(families))) + "|"]
    for name in methods:
        needs = methods.build(name).needs
        cells = []
        for family in families:
            able = [letters[task] for task, offered in offers[family].items() if needs <= offered]
            cells.append("".join(able) or "–")
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return rows


def conservation_table() -> list[str]:
    """How far the sum of relevance is from 1 at any border between blocks, on tiny models of every family."""
    import numpy as np

    from raison.methods.lrp import ALPHA_BETA
    from raison.models.probe import probe_text_and_target
    from raison.models.relevance.mode import Heads
    from raison.testing import FAMILIES, tiny_model
    from raison.testing.precision import Float64

    rows = ["| family | borders | all heads | one head of each block |", "|---|---|---|---|"]
    for name, tasks in FAMILIES.items():
        worst, borders = [0.0, 0.0], 0
        for task in tasks:
            model = tiny_model(name, task)
            encoding, target = probe_text_and_target(model)
            chosen = None
            for kind in range(2):
                want = frozenset({"relevance", "attention", "cuts"})
                with Float64():
                    ((_, trace),) = model.trace(
                        [encoding], [target], want=want, rules=ALPHA_BETA.through(chosen)
                    )
                totals = [*trace.cuts, float(trace.relevance.sum())]
                worst[kind] = max(worst[kind], *(abs(total - 1) for total in totals))
                borders = max(borders, len(totals))
                first = np.tile([True, False], (len(trace.maps), 1))
                chosen = Heads(first, np.zeros_like(first))
        shown = [
            next(limit for limit in ("1e-9", "1e-6", "1e-4", "inf") if each < float(limit))
            for each in worst
        ]
        if "inf" not in shown:  # a family that fails is not listed
            rows.append(f"| {name} | {borders} | < {shown[0]} | < {shown[1]} |")
    return rows


def others_table() -> list[str]:
    """Architectures without a family file, loaded by their functions alone."""
    import torch
    import transformers as t

    import raison
    from raison.testing import tiny_hf

    small = dict(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, pad_token_id=0, vocab_size=400
    )
    long = dict(small, intermediate_size=24, max_position_embeddings=70)
    stack = dict(
        vocab_size=400, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=64, pad_token_id=0,
        eos_token_id=2, decoder_start_token_id=0,
    )  # fmt: skip
    causal, label, seq = (
        t.AutoModelForCausalLM,
        t.AutoModelForSequenceClassification,
        t.AutoModelForSeq2SeqLM,
    )
    tried = [
        (
            "opt",
            causal,
            t.OPTConfig(**small, ffn_dim=24, max_position_embeddings=64, word_embed_proj_dim=16),
        ),
        ("bloom", causal, t.BloomConfig(**small, n_head=2)),
        ("falcon", causal, t.FalconConfig(**small)),
        (
            "gptj",
            causal,
            t.GPTJConfig(
                vocab_size=400, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, n_positions=64
            ),
        ),
        ("phi3", causal, t.Phi3Config(**long, sliding_window=4, bos_token_id=1, eos_token_id=2)),
        ("olmo2", causal, t.Olmo2Config(**long, bos_token_id=1, eos_token_id=2)),
        (
            "mamba",
            causal,
            t.MambaConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, pad_token_id=0),
        ),
        ("mpnet", label, t.MPNetConfig(**long)),
        (
            "xlnet",
            label,
            t.XLNetConfig(
                vocab_size=400, d_model=16, n_layer=2, n_head=2, d_inner=24, pad_token_id=0
            ),
        ),
        (
            "deberta (v1)",
            label,
            t.DebertaConfig(**long, relative_attention=True, pos_att_type=["c2p", "p2c"]),
        ),
        ("longformer", label, t.LongformerConfig(**long, attention_window=4)),
        (
            "fnet",
            label,
            t.FNetConfig(vocab_size=400, hidden_size=16, num_hidden_layers=2, intermediate_size=24),
        ),
        ("bart", label, t.BartConfig(**stack)),
        ("pegasus", seq, t.PegasusConfig(**stack)),
        ("m2m_100", seq, t.M2M100Config(**stack)),
    ]
    rows = [
        "| architecture | task | offers | removals (default first) | delete = mask | shares prefixes |",
        "|---|---|---|---|---|---|",
    ]
    tokenizers = {
        causal: ("gpt2", "causal"),
        label: ("bert", "classification"),
        seq: ("bart", "seq2seq"),
    }
    for name, auto, config in tried:
        torch.manual_seed(0)
        model = raison.load(auto.from_config(config).double(), tiny_hf(*tokenizers[auto])[1])
        exact = MARK["delete" in model.removals]
        offers, removals = ", ".join(sorted(model.offers)), ", ".join(model.removals)
        rows.append(
            f"| {name} | {model.task} | {offers} | {removals} | {exact} | {MARK[model.shares_prefixes]} |"
        )
    return rows


def removals_table() -> list[str]:
    from raison.models.protocol import REMOVALS

    return [
        "| removal | meaning |",
        "|---|---|",
        *(f"| `{name}` | {about} |" for name, about in REMOVALS.items()),
    ]


def help_text() -> list[str]:
    """The command line's own help."""
    from typer.testing import CliRunner

    from raison.cli.app import app

    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    parts = []
    for command in (
        [],
        ["explain"],
        ["rationalize"],
        ["evaluate"],
        ["compare"],
        ["reproduce"],
        ["compatibility"],
        ["train", "compatibility"],
        ["train", "classifier"],
        ["train", "rationalizer"],
        ["audit"],
        ["run"],
        ["status"],
        ["report"],
        ["store"],
        ["serve"],
        ["show"],
        ["heads"],
        ["idf"],
        ["ls"],
    ):
        shown = runner.invoke(app, [*command, "--help"], prog_name="raison").output.rstrip()
        parts += [
            f"### raison {' '.join(command)}".rstrip(),
            "",
            "```",
            *(x.rstrip() for x in shown.splitlines()),
            "```",
            "",
        ]
    return parts[:-1]


def page() -> str:
    blocks = [
        [
            "# Reference",
            "",
            "Written by `python docs/generate.py` from the code; the tests fail when it is out of date.",
        ],
        ["## Methods", "", *methods_table()],
        ["## Searches for rationales", "", *searches_table(), "", CERTIFICATE],
        ["## When a context is enough", "", *rules_table()],
        ["## Metrics", "", *metrics_table()],
        ["## Data sets", "", *datasets_table()],
        ["## Suites", "", SUITES, "", *suites_table()],
        ["## Word dropout", "", DROPOUT, "", *keep_rules_table()],
        ["## What absence means", "", *removals_table(), "", DEFAULTS],
        ["## Families", "", FAMILIES_TEXT, "", *families_table()],
        ["## Methods, families and tasks", "", WORKS, "", *works_table()],
        ["## Conservation of relevance", "", CONSERVED, "", *conservation_table()],
        ["## Other architectures", "", OTHERS_TEXT, "", *others_table()],
        ["## Command line", "", *help_text()],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


DEFAULTS = """The default is `delete` for every task, wherever the load probe finds that it equals `mask`: it is
exact, and the cheapest, since removed tokens are not computed at all. Elsewhere the default is the first that the
probe found to work. Every result records which removal it used."""

SUITES = """What `raison reproduce NAME` runs. A model that a recipe makes is passed as `--model name=FOLDER`; without
it, its part is left out of the page and the command that makes it is named."""

DROPOUT = """`raison train compatibility --keep RULE` draws a set of tokens that a pass may see, for a share `--mix` of
the batches; a token always sees itself. `heads=alike` is one set for all attention heads, `each` a set of each head's
own; all layers see the same."""

FAMILIES_TEXT = """What the load probe finds on tiny random models. `delete = mask` says whether running only the kept
tokens at their original positions gives the same answer as hiding the others from attention; `shares prefixes`, whether
a search computes a prefix that several sets have in common only once."""

WORKS = """Which method works where: c classification, t tagging, q question answering, l causal language models, s
encoder–decoders. `own` needs a model that explains itself, `masked_lrp` and its like the statistics of a model's heads
(`raison heads`; the two defaults bring theirs)."""

CONSERVED = """`lrp`, `partial_lrp`, `transformer_attribution` and `masked_lrp` hand 1 back from the answer to the
words. How far its sum is from 1 at any border between blocks and at the words, in float64, the worst of all tasks
of the family: through all heads, and through only one head of each block (masked and renormalised). Every result
shows its own error in `diagnostics["conservation_error"]`."""

CERTIFICATE = """Every rationale carries a `certificate`: `rule`, `sufficient` (evaluated again: at full length and
masked where the search deleted, and nothing remembered), `irreducible` (no unit can be left out), `optimal` and
`lower_bound` (no sufficient set has fewer units), `size` (units selected) and `kept_tokens` (context tokens that the
model reads, those included that can't be removed: P0's length) of `context_tokens`, `is_prediction` (the target is
what the model itself predicts), `status` (complete, budget, interrupted, impossible), `value` and `full_value` (with
`probability` where they are log-probabilities), `evaluations`, `search_tokens` (token-forwards of the search: tokens
pushed through the blocks, a backward pass counting as two forward passes; the whole context counts only where the
prediction had not read it) and `check_tokens` (of the certificate). `steps` are the path: what was added or removed,
which `units` there were then (removing goes on from the best set, which need not be that of the step before), its
value, and the five best candidates. `scores` say how much the value drops when a unit is left out of the rationale."""

OTHERS_TEXT = """Any transformers model loads with what it can honestly offer. These have no family file; the
probe decided. A removal is offered only if it really hides: other words in the removed places must not change the
answer."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch

    torch.set_num_threads(
        1
    )  # tiny tensors: threads that wait for each other cost more than they bring
    text = page()
    if not args.check:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit("docs/reference.md is out of date: run  python docs/generate.py")


if __name__ == "__main__":
    main()
