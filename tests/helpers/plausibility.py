"""Explanations with gold words, and their numbers by name."""

from __future__ import annotations

import numpy as np

from raison.core.records import Encoding, Example, Explanation, Span, Target, Units
from raison.core.registry import metrics
from raison.metrics.base import Subject
from raison.metrics.metric_runner import measure_explanations


def subject(scores, gold, *, selected=None, order=None, second=0, share=None, cut=0):
    """Words with these scores, of which the last `second` are in a second text; gold as (first, last) word."""
    n = len(scores)
    sizes = [n - second, second] if second else [n]
    texts = [" ".join(f"w{i:02}" for i in range(size + cut)) for size in sizes]
    places = [(s, 4 * i, 4 * i + 3) for s, size in enumerate(sizes) for i in range(size)]
    segment, start, end = (np.array(column) for column in zip(*places, strict=True))
    names = tuple(texts[s][a:b] for s, a, b in places)
    segments = ("first", "second")[: len(texts)]
    encoding = Encoding(
        ids=np.arange(n),
        tokens=names,
        segments=segments,
        texts=tuple(texts),
        segment=segment,
        start=start,
        end=end,
        positions=np.arange(n),
        fixed=np.zeros(n, bool),
    )
    units = Units("word", np.arange(n), names, tuple(places))
    explanation = Explanation(
        encoding=encoding,
        units=units,
        target=Target("label", (0,)),
        scores=np.asarray(scores, float),
        method="test",
        model="none",
        selected=None if selected is None else np.asarray(selected, bool),
        order=None if order is None else np.asarray(order),
    )
    spans = []
    for a, b in gold:
        side = 0 if a < sizes[0] + cut or not second else 1
        base = sizes[0] if side else 0
        spans.append(Span(4 * (a - base), 4 * (b - base) + 3, segments[side]))
    example = Example(texts[0], texts[1] if second else None, gold=tuple(spans))
    return Subject(explanation, example, gold_share=share)


def numbers(spec, *subjects):
    chosen = metrics.build(spec)
    found = [row[0] for row in measure_explanations(None, subjects, [chosen])]
    assert all(tuple(row) == tuple(key.name for key in chosen.keys) for row in found)
    return found[0] if len(subjects) == 1 else found


def pool(found, key):
    return sum(row[key].part for row in found) / sum(row[key].whole for row in found)


def random_masks(count=40, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        n = int(generator.integers(1, 15))
        gold = generator.random(n) < 0.4
        gold[generator.integers(n)] = True
        yield generator, generator.random(n) < generator.random(), gold
