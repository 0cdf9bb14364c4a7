"""Trees in brackets with a label at every node, as the Stanford Sentiment Treebank has them: (3 (2 It) (4 works))."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from raison.core.errors import InputError
from raison.datasets.character_spans import join_words

__all__ = ["Node", "Tree", "parse_tree"]

PIECES = re.compile(r"[()]|[^ ()]+")
# what the Penn Treebank writes for characters that it needs itself
ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


@dataclass(frozen=True)
class Node:
    """A phrase: its label and the leaves below it."""

    label: str
    first: int  # leaf
    last: int  # one past the last leaf


@dataclass(frozen=True)
class Tree:
    """A sentence whose phrases have labels."""

    text: str  # the leaves with a space between them
    leaves: tuple[tuple[int, int], ...]  # characters of each leaf
    labels: tuple[str, ...]  # of each leaf
    nodes: tuple[
        Node, ...
    ]  # all phrases, the leaves included, in the order in which they begin; the first is the root

    def place(self, node: Node) -> tuple[int, int]:
        """Characters of a phrase."""
        start, _ = self.leaves[node.first]
        _, end = self.leaves[node.last - 1]
        return start, end


class TreeParser:
    """Builds the nodes of a tree, piece by piece."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.labels: list[str] = []
        self.nodes: list[Node] = []
        self.open_nodes: list[int] = []  # numbers of the nodes that are not closed yet

    def open_bracket(self, label: str) -> None:
        """Begin a phrase; what follows the bracket is its label."""
        if label in ("", "(", ")"):
            raise InputError("a bracket has no label.")
        self.open_nodes.append(len(self.nodes))
        self.nodes.append(Node(label, len(self.words), -1))

    def close_bracket(self) -> None:
        """End the phrase that was begun last."""
        number = self.open_nodes.pop()
        node = self.nodes[number]
        if node.first == len(self.words):
            raise InputError("a bracket holds no word.")
        self.nodes[number] = replace(node, last=len(self.words))

    def add_word(self, word: str, *, before: str, after: str) -> None:
        """Add a leaf, which must stand alone in a bracket: two pieces `before` it one opens, `after` it one closes."""
        if before != "(" or after != ")":
            raise InputError(f"the word {word!r} has no bracket of its own.")
        self.words.append(unescape_treebank_word(word))
        self.labels.append(self.nodes[self.open_nodes[-1]].label)

    def tree(self) -> Tree:
        """The tree, when its line has been read."""
        if not self.nodes:
            raise InputError("there is no tree.")
        if self.open_nodes:
            raise InputError("the brackets of the tree are not closed.")

        text, places = join_words(self.words)
        return Tree(
            text,
            leaves=tuple(places),
            labels=tuple(self.labels),
            nodes=tuple(self.nodes),
        )


def parse_tree(line: str) -> Tree:
    """The tree of a line."""
    pieces = PIECES.findall(line)
    parser = TreeParser()
    index = 0

    while index < len(pieces):
        piece = pieces[index]
        following = pieces[index + 1] if index + 1 < len(pieces) else ""
        if parser.nodes and not parser.open_nodes:
            raise InputError(f"something follows the end of the tree: {piece!r}.")

        if piece == "(":
            parser.open_bracket(following)
            index += 2  # the label has been read
            continue

        if not parser.open_nodes:
            raise InputError(f"the tree begins with {piece!r}, not with a bracket.")
        if piece == ")":
            parser.close_bracket()
        else:
            parser.add_word(piece, before=pieces[index - 2], after=following)
        index += 1

    return parser.tree()


def unescape_treebank_word(word: str) -> str:
    """A word as it stood before the Penn Treebank escaped it."""
    return ESCAPED.get(word.upper(), word.replace("\\/", "/").replace("\\*", "*"))
