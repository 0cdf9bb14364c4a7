"""LAMBADA: passages whose last word is to be predicted, with or without a human rationale.

Paperno et al. 2016, The LAMBADA dataset. The example's text is the passage without its last word, which is the target
(what is explained, with the space before it) and the label.
"""

from __future__ import annotations

import re
from typing import Any

from raison.core.errors import InputError
from raison.core.records import Example
from raison.datasets.jsonl import value_of
from raison.datasets.spans import stated

__all__ = ["passage"]

LAST = re.compile(r"\s+(\S+)\s*\Z")


def passage(record: dict[str, Any], id: str, **meta: Any) -> Example:
    """A passage; its rationale are character spans of the whole passage, in the order in which they were marked."""
    whole = value_of(record, "text", str)
    last = LAST.search(whole)
    if last is None or not last.start():
        raise InputError("the passage has a single word.")
    text = whole[: last.start()]
    gold = []
    for span in record.get("rationale", ()):
        if not isinstance(span, list) or len(span) != 2:
            raise InputError(f"a span has two whole numbers, not {span!r}.")
        gold.append(stated(text, span[0], span[1], None, "text"))
    return Example(text, id=id, target=whole[last.start() : last.end(1)], label=last[1], gold=tuple(gold), meta=meta)
