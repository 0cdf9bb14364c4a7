"""The Stanford Sentiment Treebank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import InputError
from raison.core.parameters import check_integer
from raison.core.records import Example, Span
from raison.datasets.base import Dataset, dataset, negative_positive
from raison.datasets.bracket_trees import Node, Tree, parse_tree
from raison.datasets.dataset_rows import Broken, Row, Rows, map_rows
from raison.datasets.text_files import find_file, read_lines

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
    labels = negative_positive
    gold = True

    # how far from neutral a word must be to be gold: 1, or 2 for the labels 0 and 4 only
    distance: int = 2
    classes: int = 2  # 2: negative and positive; 5: all
    phrases: bool = False  # every phrase and word of a sentence as an example of its own

    def __post_init__(self) -> None:
        check_integer("distance", self.distance, 1)
        if self.distance > NEUTRAL:
            raise InputError(f"distance is 1 or {NEUTRAL}, not {self.distance}.")
        if self.classes not in (2, 5):
            raise InputError(f"classes is 2 or 5, not {self.classes}.")
        if self.classes == 5:
            self.set_facts(labels=FIVE)

    def rows(self, place: Path, split: str) -> Rows[Example]:
        for row in map_rows(read_lines(find_file(place, f"{split}.txt")), sentiment_tree):
            if isinstance(row, Broken):
                yield row
                continue
            for example in self.examples_of_tree(row.value, row.line):
                yield row.with_value(example)

    def examples_of_tree(self, tree: Tree, line: int) -> Iterator[Example]:
        """The sentence, or all of its phrases; with two classes those that are not neutral."""
        nodes = tree.nodes if self.phrases else tree.nodes[:1]
        for number, node in enumerate(nodes):
            score = int(node.label)
            if self.classes == 2 and score == NEUTRAL:
                continue

            start, end = tree.place(node)
            yield Example(
                tree.text[start:end],
                id=f"{line}/{number}" if self.phrases else str(line),
                label=self.label_of(score),
                gold=self.gold_words(tree, node, start),
                meta={"score": score},
            )

    def label_of(self, score: int) -> str:
        """The class of a score from 0 to 4."""
        return FIVE[score] if self.classes == 5 else negative_positive[score > NEUTRAL]

    def gold_words(self, tree: Tree, node: Node, start: int) -> tuple[Span, ...]:
        """Words of a phrase that are far from neutral, each a span of its own."""
        spans = []
        for leaf in range(node.first, node.last):
            distance = abs(int(tree.labels[leaf]) - NEUTRAL)
            if distance < self.distance:
                continue
            first, end = tree.leaves[leaf]
            spans.append(Span(first - start, end - start, "text"))
        return tuple(spans)


def sentiment_tree(row: Row[str]) -> Tree:
    """The tree of a line, whose labels must be scores."""
    tree = parse_tree(row.value)
    for node in tree.nodes:
        if node.label not in ("0", "1", "2", "3", "4"):
            raise InputError(f"the label {node.label!r} is no number from 0 to 4.")
    return tree
