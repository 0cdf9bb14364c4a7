"""Schemas of requests: the shapes of their bodies, which FastAPI checks and describes (OpenAPI)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

__all__ = [
    "About",
    "Explain",
    "Export",
    "Ground",
    "Heads",
    "Predict",
    "Rationalize",
    "Remove",
    "Trusted",
]

Text = Annotated[StrictStr, Field(max_length=1_000_000)]
Name = Annotated[StrictStr, Field(max_length=300)]
Number = Annotated[StrictInt, Field(ge=0, lt=2**31)]
Target = Number | Annotated[StrictStr, Field(max_length=2000)] | None


class Body(BaseModel):
    """Nothing but what is named, and no conversion of one type to another."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class About(Body):
    """A text, a pair, a question with its context, a prompt or a source sentence; and whose prediction."""

    model: Name
    text: Text
    pair: Optional[Text] = None


class Predict(About):
    """What the model says, and how it cuts the text."""


class Asked(About):
    target: Target = None
    contrast: Target = None
    units: Literal["token", "word", "sentence"] = "word"
    removal: Optional[Name] = None


class Explain(Asked):
    """Scores by one method or several."""

    methods: Annotated[list[Name], Field(min_length=1, max_length=16)] = ["leave_one_out"]
    seed: Number = 0


class Rationalize(Asked):
    """The smallest part that is enough; target "all" explains every token."""

    search: Name = "refined"
    sufficient: Optional[Name] = None
    generate: Annotated[StrictInt, Field(ge=0, le=64)] = 0


class Ground(Body):
    """An answer over passages."""

    model: Name
    question: Text
    passages: Annotated[dict[Name, Text], Field(min_length=1, max_length=32)]
    answer: Optional[Text] = None
    search: Name = "hierarchical"


class Trusted(Asked):
    """Is this one explanation to be trusted?"""

    method: Name = "leave_one_out"
    seed: Number = 0


class Remove(Asked):
    """What if these units were not there?"""

    removed: Annotated[list[Number], Field(max_length=5000)]


class Heads(Asked):
    """Heads, and the explanation without some of them."""

    method: Name = "leave_one_out"
    off: Annotated[list[tuple[Number, Number]], Field(max_length=2000)] = []


class Export(Body):
    """Explanations as they came, to be had as a file."""

    explanations: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=600)]
    kind: Literal["html", "svg", "png"] = "html"
    title: Name = "Explanation"
