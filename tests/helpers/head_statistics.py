"""Statistics of three maps of four heads with round numbers, and how statistics are printed."""

from __future__ import annotations

import pytest

from raison.core.artifact import Artifact
from raison.show.head_selection import HeadSelection
from raison.show.terminal.heads import print_heads


@pytest.fixture
def statistics() -> Artifact:
    """Three maps of four heads with round numbers."""
    zero = [[0.0] * 4] * 3
    data = {
        "shape": {"self": [3, 4]},
        "kinds": ["self"] * 3,
        "parsed": ["self"],
        "relations": ["nsubj", "obj"],
        "direction": "dependent to its head word",
        "alpha": {"nsubj": [[0.5, 0.2, 0.61, 0.4], [0.2, 0.3, 0.1, 0.0], [0.0] * 4], "obj": zero},
        "counts": {"nsubj": 100, "obj": 100},
        "lambda": {
            "nsubj": {"-1": 0.5, "-2": 0.4, "1": 0.1},
            "obj": {"1": 0.3, "2": 0.3, "30": 0.4},
        },
        "lambda_max": {"nsubj": 0.5, "obj": 0.4},
        "positional": {
            "offset": [[-1, 1, 1, 2]] * 3,
            "alpha": [[0.9, 0.1, 0.2, 0.85], [0.3, 0.5, 0.4, 0.1], [0.0, 0.0, 0.1, 0.0]],
        },
    }
    return Artifact("heads", data, "three", {"corpus": "made up", "sentences": 7})


def printed(chosen: HeadSelection, **console) -> str:
    import io

    from rich.console import Console

    target = Console(file=io.StringIO(), width=100, **console)
    print_heads(chosen, target)
    return target.file.getvalue()
