"""The Stanford Sentiment Treebank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.records import Example, Span
from raison.core.spec import whole
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.rows import Broken, Row, Rows, each, lines, present
from raison.datasets.trees import Node, Tree, parsed

FIVE = ("very negative", "negative", "neutral", "positive", "very positive")
NEUTRAL = 2


@dataset("sst_trees")
@dataclass(frozen=True)
class SstTrees(Dataset):
    """Sentences of movie reviews with the sentiment of every phrase; words far from neutral are gold.

    A word is gold where people put it at least `distance` from neutral on the scale of 0 to 4. With two classes,
    neutral sentences are left out. `meta["score"]` is the number of the label on that scale.
    """

    task = "classification"
    splits = ("train", "dev", "test")
    folder = "sst_trees"
    source = "https://nlp.stanford.edu/sentiment"
    paper = "Socher et al. 2013, Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank"
    gold = True

    distance: int = 2  # how far from neutral a word must be to be gold: 1, or 2 for the labels 0 and 4 only
    classes: int = 2  # 2: negative and positive; 5: all
    phrases: bool = False  # every phrase and word of a sentence as an example of its own

    def __post_init__(self) -> None:
        whole("distance", self.distance, 1)
        if self.distance > NEUTRAL:
            raise InputError(f"distance is 1 or {NEUTRAL}, not {self.distance}.")
        if self.classes not in (2, 5):
            raise InputError(f"classes is 2 or 5, not {self.classes}.")

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return FIVE if self.classes == 5 else negative_positive

    def rows(self, place: Path, split: str) -> Rows[Example]:
        for row in each(lines(present(place, f"{split}.txt")), lambda row: checked(parsed(row.value))):
            if isinstance(row, Broken):
                yield row
            else:
                yield from self.examples(row)

    def examples(self, row: Row[Tree]) -> Iterator[Row[Example]]:
        tree = row.value
        for number, node in enumerate(tree.nodes if self.phrases else tree.nodes[:1]):
            score = int(node.label)
            if self.classes == 2 and score == NEUTRAL:
                continue
            label = FIVE[score] if self.classes == 5 else negative_positive[score > NEUTRAL]
            start, end = tree.place(node)
            name = f"{row.line}/{number}" if self.phrases else str(row.line)
            gold = self.marked(tree, node, start)
            yield Row(
                row.file,
                row.line,
                Example(tree.text[start:end], id=name, label=label, gold=gold, meta={"score": score}),
                row.mended,
            )

    def marked(self, tree: Tree, node: Node, start: int) -> tuple[Span, ...]:
        """Words of a phrase that are far from neutral, each a span of its own."""
        return tuple(
            Span(a - start, b - start, "text")
            for (a, b), label in list(zip(tree.leaves, tree.labels, strict=True))[node.first : node.last]
            if abs(int(label) - NEUTRAL) >= self.distance
        )


def checked(tree: Tree) -> Tree:
    for node in tree.nodes:
        if node.label not in ("0", "1", "2", "3", "4"):
            raise InputError(f"the label {node.label!r} is no number from 0 to 4.")
    return tree
