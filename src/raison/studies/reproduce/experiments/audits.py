"""Tables of P2 and P3 from audits of many classifiers: recipes/attention.py trains and audits them, a line for each.

A method of such a suite is the name of a kind of model, and what is resampled and compared are its seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raison.core.evaluation import Column, EvaluatedText, Evaluation, MethodAxis
from raison.studies.reproduce.experiment import NotMade, Number, Trial, experiment, found
from raison.studies.reproduce.experiments.lines import read_lines

__all__ = ["audits", "line_of", "numbers_of"]

SHOWN = 32  # words of a text that a picture has room for
# of a number without a good and a bad side: what speaks for attention that explains
COLUMNS = (
    Column("accuracy", "on the test part", True),
    Column("f1", "of the second class, test part", True),
    Column("uniform", "F1 lost with uniform attention", True),
    Column("permuted", "F1 lost with shuffled attention, the mean of ten", True),
    Column("tau_gradient_words", "τ-b of attention and the gradient at words", True),
    Column("tau_removed_words", "τ-b of attention and leaving words out", True),
    Column("tau_gradient_states", "τ-b of attention and the gradient at states", True),
    Column("tau_removed_states", "τ-b of attention and leaving states out", True),
    Column("entropy_attention", "of attention", False),
    Column("entropy_gradient", "of words' importance by gradients", False),
    Column("entropy_removed", "of words' importance by leaving them out", False),
    Column("entropy_influence", "of words' influence on a hidden state", False),
    Column("entropy_facets", "likewise, by facets (P2 App. A), on a few texts", False),
    Column("token_probability", "of the answer from each word alone", False),
    Column("information_frequent", "of embeddings and states, frequent words, nats", True),
    Column("information_drawn", "likewise, words drawn by count^¾", True),
    Column("instance_jsd", "largest JSD of an attention with the same answer", False),
    Column("auprc", "of attention against words that people find loaded, the mean over texts", True),
    Column("aopc", "probability that the answer loses while the most attended words go", True),
    Column("jsd", "of a trained adversary's attention", None),
    Column("tvd", "of its answers", None),
    Column("adversary_accuracy", "of that adversary", True),
    Column("lost", "accuracy that it loses", True),
)


@experiment("audits")
def audits(trial: Trial) -> Evaluation:
    """Numbers of audits, seed by seed; the setting `columns` says which."""
    made = read_lines(Path(str(trial.model)))
    wanted = trial.run.settings.get("columns", [column.key for column in COLUMNS])
    columns = [column for column in COLUMNS if column.key in wanted]
    lam = float(trial.run.settings.get("lambda", 1.0))
    names = {title: name.partition(":") for title, name in trial.methods.items()}  # folder, or folder:kind of adversary
    read = {title: made.get((trial.run.data, name), {}) for title, (name, _, _) in names.items()}
    there = {title: rows for title, rows in read.items() if rows}
    if not there:
        raise NotMade(f"{str(trial.model)!r} holds no audits of {trial.run.data}: make them with recipes/attention.py.")
    seeds = sorted({seed for rows in there.values() for seed in rows})[: trial.count]
    numbers: dict[str, list[Mapping[str, Number]]] = {}
    for title in trial.methods:
        rows = read[title]
        kind = names[title][2]
        every = [with_adversary(rows[seed], kind, lam) if seed in rows else {} for seed in seeds]
        numbers[title] = [{column.key: row.get(column.key) for column in columns} for row in every]
    missing = [title for title in trial.methods if title not in there]
    about = [f"Seeds: {', '.join(f'{title} {len(rows)}' for title, rows in there.items())}."]
    if missing:
        about.append(f"Not made yet: {', '.join(missing)}.")
    if trial.axis is not None:
        entropies = {title: [row.get("entropy_gradient") for row in rows] for title, rows in numbers.items()}
        about += swept(entropies, trial.axis)
    one = next(iter(there.values()))
    about.append(f"{next(iter(one.values()))['texts']} test texts.")
    curves: dict[str, dict[str, list[float]]] = {}
    words: list[str] = []
    if trial.run.settings.get("shown"):
        curves["alone_curve"], words, said = word_by_word({title: rows.get(0, {}) for title, rows in there.items()})
        about += said
    across: dict[str, dict[str, list[float]]] = {}
    if lams := trial.run.settings.get("swept"):  # P3 Figure 1: how far answers move when attention does
        paths = {title: [means(read[title], kind, lam) for lam in lams] for title, (_, _, kind) in names.items()}
        curves["tvd_curve"] = {title: [tvd for _, tvd in path] for title, path in paths.items()}
        across["tvd_curve"] = {title: [jsd for jsd, _ in path] for title, path in paths.items()}
    evaluation = found(trial_named(trial), columns, numbers, data=trial.run.data, about=about)
    seen = tuple(EvaluatedText(str(seed), f"seed {seed}") for seed in seeds)
    return replace(
        evaluation, texts=seen, curves=curves, settings={**evaluation.settings, "words": words, "across": across}
    )


def means(rows: Mapping[int, Mapping[str, Any]], kind: str, lam: float) -> tuple[float, float]:
    """JSD and TVD of the adversaries of a kind, over seeds."""
    against = [each for line in rows.values() for each in line["adversaries"]]
    pairs = [(each["jsd"], each["tvd"]) for each in against if (each["kind"], each["lam"]) == (kind, lam)]
    jsd, tvd = np.mean(pairs, axis=0) if pairs else (float("nan"), float("nan"))
    return float(jsd), float(tvd)


def word_by_word(lines: Mapping[str, Mapping[str, Any]]) -> tuple[dict[str, list[float]], list[str], list[str]]:
    """The probability that each word of a text alone gives to what is predicted (P3 Figure 2), the words, and what is
    to be said; of the models that read the text alike and answer it alike."""
    told = {title: line["shown"] for title, line in lines.items() if line.get("shown")}
    if not told:
        return {}, [], []
    first = next(iter(told.values()))
    same = {t: s for t, s in told.items() if (s["tokens"], s["predicted"]) == (first["tokens"], first["predicted"])}
    words = list(first["tokens"][:SHOWN])
    more = len(first["tokens"]) - len(words)
    said = f"The picture's text is predicted {first['predicted']!r}: {' '.join(words)}"
    said += f" … (and {more} words more)." if more else "."
    return {title: list(shown["probability"][:SHOWN]) for title, shown in same.items()}, words, [said]


def swept(entropies: Mapping[str, Sequence[Number]], axis: MethodAxis) -> list[str]:
    """Along models that differ in λ: the correlation of λ with the entropy of words' importance (P2 Table 2)."""
    pairs = []
    for title, values in entropies.items():
        if title not in axis.positions:
            continue
        for value in values:
            if value is not None:
                pairs.append((float(axis.positions[title]), float(value)))
    if len({lam for lam, _ in pairs}) < 3:
        return []
    lams, found = np.array(pairs).T
    ranks = lambda x: np.array([(x < v).sum() + (x == v).sum() / 2 for v in x])  # noqa: E731
    plain, ranked = (np.corrcoef(a, b)[0, 1] for a, b in ((lams, found), (ranks(lams), ranks(found))))
    return [
        f"Over {len(pairs)} models λ and the entropy of words' importance by gradients are correlated by {plain:+.2f} "
        f"(Pearson) and {ranked:+.2f} (ranks)."
    ]


def trial_named(trial: Trial) -> Any:
    """`found` asks a model for its name; here there are many."""
    return replace(trial, model=Many())  # type: ignore[arg-type]


class Many:
    name = "many classifiers"


def line_of(told: Mapping[str, Any], data: str, name: str, seed: int) -> dict[str, Any]:
    """What the tables need of one audit."""
    numbers = {key: value if value is None else round(float(value), 6) for key, value in numbers_of(told).items()}
    keys = ("kind", "lam", "jsd", "tvd", "accuracy")
    against = [{key: each[key] for key in keys} for each in told["adversaries"]]
    line = {
        "data": data, "name": name, "seed": seed, "texts": told["count"], "numbers": numbers, "adversaries": against,
    }  # fmt: skip
    if seed == 0 and told.get("texts"):  # the same text of all models, since it is drawn by the seed
        line["shown"] = {key: told["texts"][0][key] for key in ("tokens", "probability", "predicted")}
    return line


def with_adversary(line: Mapping[str, Any], kind: str, lam: float) -> dict[str, Number]:
    """The numbers of a line, and those of its adversary of a kind."""
    made: dict[str, Number] = dict(line["numbers"])
    for each in line["adversaries"]:
        if each["kind"] == kind and each["lam"] == lam:
            lost = line["numbers"]["accuracy"] - each["accuracy"]
            made |= {"jsd": each["jsd"], "tvd": each["tvd"], "adversary_accuracy": each["accuracy"], "lost": lost}
    return made


def numbers_of(told: Mapping[str, Any]) -> dict[str, Number]:
    """The columns of one audit; what it does not tell is None."""

    def mean(group: str, name: str) -> float | None:
        spread = told[group].get(name)
        return None if not spread or not spread["count"] else float(spread["mean"])

    def alone(name: str) -> float | None:
        return None if told[name] is None or not told[name]["count"] else float(told[name]["mean"])

    return {
        "accuracy": told["accuracy"],
        "f1": told["f1"],
        "uniform": told["replaced"].get("uniform", {}).get("f1 drop"),
        "permuted": told["replaced"].get("permuted", {}).get("f1 drop"),
        "tau_gradient_words": mean("agreement", "gradient of words"),
        "tau_removed_words": mean("agreement", "leaving words out"),
        "tau_gradient_states": mean("agreement", "gradient of states"),
        "tau_removed_states": mean("agreement", "leaving states out"),
        "entropy_attention": mean("entropy", "attention"),
        "entropy_gradient": mean("entropy", "gradient of words"),
        "entropy_removed": mean("entropy", "leaving words out"),
        "entropy_influence": mean("entropy", "influence"),
        "entropy_facets": mean("entropy", "influence, by facet"),
        "token_probability": alone("token_probability"),
        "information_frequent": told["information"].get("frequent words", {}).get("value"),
        "information_drawn": told["information"].get("drawn words", {}).get("value"),
        "instance_jsd": alone("instance"),
        "auprc": told.get("judged", {}).get("auprc"),
        "aopc": told.get("judged", {}).get("aopc"),
    }
