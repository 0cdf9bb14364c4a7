"""Records of an audit: numbers that are not defined are NaN in Python and null in JSON."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from raison.core.json_record import Record

__all__ = ["AuditRecord"]


class AuditRecord(Record):
    """A record whose numbers may be undefined."""

    def validate(self) -> None:
        """Read the null of a number that is never missing as NaN."""
        for item in fields(self):
            if item.type == "float" and item.name in vars(self) and vars(self)[item.name] is None:
                object.__setattr__(self, item.name, math.nan)

    def to_dict(self) -> dict[str, Any]:
        """The fields in plain types."""
        return {name: without_nan(value) for name, value in super().to_dict().items()}


def without_nan(value: Any) -> Any:
    """The same with None for what is not finite."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
