"""LAMBADA: passages whose last word is to be predicted, with or without a human rationale.

Paperno et al. 2016, The LAMBADA dataset. The example's text is the passage without its last word, which is the target
(what is explained, with the space before it) and the label.
"""

from __future__ import annotations

import re

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.character_spans import checked_span
from raison.datasets.json_files import Json, required_json_field

__all__ = ["passage_example"]

LAST_WORD = re.compile(r"\s+(\S+)\s*\Z")


def passage_example(record: Json, *, index: int, id: str) -> Example:
    """A passage; its rationale are character spans of the whole passage, in the order in which they were marked."""
    passage = required_json_field(record, "text", str)
    last = LAST_WORD.search(passage)
    if last is None or not last.start():
        raise InputError("the passage has a single word.")

    text = passage[: last.start()]
    gold = []
    for span in record.get("rationale", ()):
        if not isinstance(span, list) or len(span) != 2:
            raise InputError(f"a span has two whole numbers, not {span!r}.")
        start, end = span
        gold.append(checked_span(text, start, end, segment="text"))

    return Example(
        text,
        id=id,
        target=passage[last.start() : last.end(1)],
        label=last[1],
        gold=tuple(gold),
        meta={"index": index},
    )
