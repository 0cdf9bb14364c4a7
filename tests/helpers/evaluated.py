"""A small evaluation, and files of explanations from elsewhere."""

from __future__ import annotations

import json

from raison.core.records import Example, Span
from raison.testing.model_contract import TEXTS

METHODS = ["leave_one_out", "input_x_gradient", "random"]

METRICS = ["comprehensiveness", "aopc", "lodds", "infidelity", "token_f1_micro", "auprc"]


def examples(count: int = 6) -> list[Example]:
    """Texts with a gold span on their second word."""
    found = []
    for k in range(count):
        text = f"{TEXTS[k % 3]} {'good ' * k}".strip()
        start = text.index(" ") + 1
        found.append(
            Example(text, id=f"e{k}", label=k % 3, gold=(Span(start, text.index(" ", start)),))
        )
    return found


def made_file(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path
