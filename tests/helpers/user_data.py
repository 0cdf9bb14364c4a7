"""Records of a user's own, and the words that they mark."""

from __future__ import annotations

import json

TEXT = "a dull film , but well acted ."  # tokens: a 0 dull 1 film 2 , 3 but 4 well 5 acted 6 . 7


def marks(example) -> list[str]:
    """The marked words, in the order of the spans."""
    second = {"second", "context"}
    return [
        (example.pair if span.segment in second else example.text)[span.start : span.end]
        for span in example.gold
    ]


def jsonl(path, *records) -> str:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return str(path)
