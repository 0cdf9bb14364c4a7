"""score and leave_one_out against the bare model on the same work.

    python benchmarks/foundation.py                 # writes benchmarks/results/foundation.md

One thread, CPU time, the two sides interleaved, medians of the ratios: timings of a busy machine are noisy,
ratios within one run are not. "bare" runs the plain transformers model on the same number of tokens in
batches of the same shape, and nothing else.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import torch
from measure import HERE, cpu, data_option, sentences

import raison
from raison.models.protocol import Question
from raison.models.runner.batching import chunks, pieces

TEXT = (
    "The jokes are stale and the pacing is dull, but the ending is a wonderful surprise that nobody in the audience "
    "expected, and the actors, who had little to do until then, suddenly seem to enjoy themselves as much as we did, "
    "so that in the end one leaves the old theatre with a smile."
)


def bare(model, work) -> None:
    """Plain forward passes of given shapes [b, t]."""
    hf = model.hf
    with torch.inference_mode():
        for rows, length in work:
            ids = torch.full((rows, length), 2000)
            rows = {"logits_to_keep": 1, "use_cache": False} if model.generates else {}
            hf(input_ids=ids, attention_mask=torch.ones_like(ids), **rows)


def shapes(model, questions) -> list[tuple[int, int]]:
    """The batches that score will run, as shapes: the bare model does the same amount of work in the same batches."""
    plan = [
        p for n, q in enumerate(questions) for p in pieces(n, q.encoding, q.target, q.keep, True)
    ]
    return [(c.rows, c.lengths[0]) for c in chunks(plan, model.budget, model.runner.row_cost)]


def compare(name, model, ours, work, repeats):
    """Interleaved CPU times of both sides; ratio of each pair."""
    ours(), bare(model, work)  # warm up
    pairs = [(cpu(ours), cpu(lambda: bare(model, work))) for _ in range(repeats)]
    tokens = sum(rows * length for rows, length in work)
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{name}: ours {mine:.2f} s, bare {theirs:.2f} s, ratio {ratio:.3f}", flush=True)
    return f"| {name} | {tokens:,} | {mine:.2f} | {theirs:.2f} | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model = raison.load("sentiment")
    rows = []

    encoding = model.encode([raison.Example(TEXT)])[0]
    target = model.resolve_targets(encoding)[0][1]
    for removal in ("mask", "delete"):
        keep = np.random.default_rng(0).random((2000, len(encoding))) < 0.5
        keep |= target.given(encoding)
        questions = [Question(encoding, target, keep)]
        full = [(68, len(encoding))] * (2000 // 68) + [(2000 % 68, len(encoding))]
        work = shapes(model, questions) if removal == "delete" else full
        name = f"score, 2,000 keep-masks of {len(encoding)} tokens, removal {removal}"
        rows.append(
            compare(
                name,
                model,
                lambda r=removal, q=questions: model.score(q, removal=r),
                work,
                args.repeats,
            )
        )

    writer = raison.load("smollm2")
    long = writer.encode([raison.Example(" ".join([TEXT] * 16))])[0]
    goal = writer.resolve_targets(long)[0][1]
    keep = np.ones((3, len(long)), bool)
    keep[np.arange(3), [5, 50, 500]] = False
    questions = [Question(long, goal, keep)]
    name = f"score, 3 keep-masks of {len(long)} tokens, smollm2, removal delete"
    rows.append(
        compare(
            name,
            writer,
            lambda q=questions: writer.score(q),
            shapes(writer, questions),
            args.repeats,
        )
    )

    texts = sentences(args.data, 100)
    found = raison.explain(model, texts, method="leave_one_out")
    questions = []
    for one in found:
        chosen = np.ones((len(one.units) + 1, len(one.units)), bool)
        np.fill_diagonal(chosen, False)
        questions.append(Question(one.encoding, one.target, one.units.keep(chosen)))
    work = shapes(model, questions)
    name = "leave_one_out by words, 100 SST-2 sentences, whole explain() call"
    rows.append(
        compare(
            name,
            model,
            lambda: raison.explain(model, texts, method="leave_one_out"),
            work,
            args.repeats,
        )
    )

    table = [
        "# score and leave_one_out against the bare model",
        "",
        "`python benchmarks/foundation.py` on the `sentiment` model, unless named otherwise;",
        "one thread, CPU seconds, medians.",
        f"torch {torch.__version__}.",
        "",
        "| work | tokens | raison, s | bare model, s | ratio |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    (HERE / "results" / "foundation.md").write_text("\n".join(table), encoding="utf-8")


if __name__ == "__main__":
    main()
