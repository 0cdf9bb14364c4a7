"""Methods that look inside a forward and a backward pass: what they cost next to the bare passes, and next to peers.

    python benchmarks/insides.py                    # prints the section; attributions.py writes it into the results

One thread, CPU time, the sides interleaved in one run, medians of ratios. "bare" is one forward and one backward pass
of the plain transformers model to its word embeddings, for its own prediction, in batches of equal length.
"""

from __future__ import annotations

import argparse
import resource
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from measure import cpu, data_option, log, sentences, table

import raison

METHODS = {
    1.2: (
        "gradient_norm", "input_x_gradient", "attention_last", "attention_mean", "attention_rollout",
        "attention_x_gradient", "gae", "cam", "gradcam", "attcat", "value_weighted_attention", "alti",
    ),
    5.0: ("lrp", "partial_lrp", "attn_lrp", "cp_lrp", "transformer_attribution", "masked_lrp", "deeplift"),
}  # fmt: skip


def peak() -> float:
    """Megabytes: the most that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def batches(model: Any, texts: Sequence[str]) -> list[torch.Tensor]:
    """Token ids [b t] of equal length."""
    groups: dict[int, list[Any]] = {}
    for encoding in model.encode([raison.Example(text) for text in texts]):
        groups.setdefault(len(encoding), []).append(torch.from_numpy(encoding.ids.copy()))
    return [torch.stack(group) for group in groups.values()]


def bare(model: Any, work: Sequence[torch.Tensor]) -> None:
    hf = model.hf
    for ids in work:
        embeddings = hf.get_input_embeddings()(ids).detach().requires_grad_(True)
        logits = hf(inputs_embeds=embeddings, attention_mask=torch.ones_like(ids)).logits
        torch.autograd.grad(logits.max(-1).values.sum(), embeddings)


def captum_input_x_gradient(model: Any, work: Sequence[torch.Tensor]) -> None:
    from captum.attr import LayerGradientXActivation

    hf = model.hf
    forward = lambda ids: hf(input_ids=ids, attention_mask=torch.ones_like(ids)).logits  # noqa: E731
    method = LayerGradientXActivation(forward, hf.get_input_embeddings())
    for ids in work:
        with torch.no_grad():
            best = forward(ids).argmax(-1)
        method.attribute(ids, target=best)


def interpreto_input_x_gradient(model: Any, texts: Sequence[str]) -> None:
    from interpreto import Granularity, Saliency
    from perturbation import named_as_classifier

    hf = named_as_classifier(model.hf)
    Saliency(hf, model.tokenizer, batch_size=16, granularity=Granularity.TOKEN).explain(list(texts))


def section(args: argparse.Namespace) -> list[str]:
    model = raison.load("sentiment")
    texts = sentences(args.data, args.sentences)
    work = batches(model, texts)
    targets = [str(found.target.text) for found in raison.explain(model, texts, "random")]
    rows: list[tuple[str, Callable[[], Any], float]] = []
    for limit, names in METHODS.items():
        for name in names:
            rows.append(
                (f"raison {name}", lambda name=name: raison.explain(model, texts, name), limit)
            )
    named = [
        raison.Example(text, target=target) for text, target in zip(texts, targets, strict=True)
    ]
    rows.append(
        (
            "raison input_x_gradient, target given",
            lambda: raison.explain(model, named, "input_x_gradient"),
            1.2,
        )
    )
    for name, action in (
        (
            "Captum LayerGradientXActivation, equal lengths",
            lambda: captum_input_x_gradient(model, work),
        ),
        (
            "Interpreto Saliency (input x gradient), batches of 16",
            lambda: interpreto_input_x_gradient(model, texts),
        ),
    ):
        try:
            action()
        except Exception as error:
            log(f"{name} is left out: {type(error).__name__}: {error}")
        else:
            rows.append((name, action, 0.0))
    found = []
    bare(model, work)
    for name, action, limit in rows:
        action()
        pairs = [(cpu(action), cpu(lambda: bare(model, work))) for _ in range(args.repeats)]
        ratio = statistics.median(a / b for a, b in pairs)
        needed, met = (f"≤ {limit} ×", "yes" if ratio <= limit else "**NO**") if limit else ("", "")
        seconds = statistics.median(a for a, _ in pairs)
        found.append((name, f"{seconds:.2f}", f"{ratio:.2f} ×", f"{peak():,.0f}", needed, met))
        log(found[-1])
    head = (
        "what",
        "CPU s",
        "of one forward and backward pass",
        "peak memory so far, MB",
        "required",
        "met",
    )
    return [
        "## 1. Looking inside: one forward and backward pass",
        "",
        f"{len(texts)} SST-2 sentences, `sentiment` model, the whole `explain` call (prediction, passes, record).",
        "",
        *table(head, found),
    ]


def options(given: Sequence[str] | None = None, quick: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data_option(parser)
    parser.add_argument("--sentences", type=int, default=10 if quick else 100)
    parser.add_argument("--repeats", type=int, default=1 if quick else 5)
    return parser.parse_args(given)


if __name__ == "__main__":
    torch.set_num_threads(1)
    print("\n".join(section(options())))
