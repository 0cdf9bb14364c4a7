"""Trees in brackets with a label at every node, as the Stanford Sentiment Treebank has them: (3 (2 It) (4 works))."""

from __future__ import annotations

import re
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.datasets.spans import joined

__all__ = ["Node", "Tree", "parsed"]

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
    nodes: tuple[Node, ...]  # all phrases, the leaves included, in the order in which they begin; the first is the root

    def place(self, node: Node) -> tuple[int, int]:
        """Characters of a phrase."""
        return self.leaves[node.first][0], self.leaves[node.last - 1][1]


def parsed(line: str) -> Tree:
    """The tree of a line."""
    pieces = PIECES.findall(line)
    words: list[str] = []
    labels: list[str] = []
    nodes: list[Node] = []
    open_nodes: list[int] = []  # numbers of the nodes that are not closed yet
    index = 0
    while index < len(pieces):
        piece = pieces[index]
        if nodes and not open_nodes:
            raise InputError(f"something follows the end of the tree: {piece!r}.")
        if piece == "(":
            if index + 1 == len(pieces) or pieces[index + 1] in "()":
                raise InputError("a bracket has no label.")
            open_nodes.append(len(nodes))
            nodes.append(Node(pieces[index + 1], len(words), -1))
            index += 2
            continue
        if not open_nodes:
            raise InputError(f"the tree begins with {piece!r}, not with a bracket.")
        number = open_nodes[-1]
        if piece == ")":
            node = nodes[number]
            if node.first == len(words):
                raise InputError("a bracket holds no word.")
            nodes[number] = Node(node.label, node.first, len(words))
            open_nodes.pop()
        elif pieces[index - 2] != "(" or pieces[index + 1 : index + 2] != [")"]:
            raise InputError(f"the word {piece!r} has no bracket of its own.")
        else:
            words.append(unescaped(piece))
            labels.append(nodes[number].label)
        index += 1
    if open_nodes or not nodes:
        raise InputError("the brackets of the tree are not closed." if nodes else "there is no tree.")
    text, places = joined(words)
    return Tree(text, tuple(places), tuple(labels), tuple(nodes))


def unescaped(word: str) -> str:
    return ESCAPED.get(word.upper(), word.replace("\\/", "/").replace("\\*", "*"))
