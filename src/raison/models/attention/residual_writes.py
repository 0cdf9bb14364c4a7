"""What each attention writes into the residual stream, token by token.

Behind the product of weights and values an attention output runs through a linear projection, perhaps a norm, and is
added to the residual stream, which may be normed in turn. All of that is linear once the deviations of the norms are
taken as given, so the output of a row splits into one part for each token it looked at, and a rest of its own. The way
is followed by what functions do to the tensors, so that no family has to be described.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from raison.models.attention.products import SHAPES, Mark, Products, tensors_in

__all__ = ["Step", "Write", "Writes"]


@dataclass
class Step:
    """A linear step along the width: x ↦ (x − mean x, if centred) · scale."""

    scale: torch.Tensor  # [b s d], or broadcast to it
    centred: bool = False

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x [.. s t d] of one row of the batch; `scale` [s d] is cut to it."""
        return self.centre(x) * self.scale.unsqueeze(-2)

    def centre(self, x: torch.Tensor) -> torch.Tensor:
        """x without its mean, if it is taken away."""
        return x - x.mean(-1, keepdim=True) if self.centred else x

    def of_rows(self, rows: slice) -> Step:
        """The step of some rows, after `cut`."""
        return self if self.scale.shape[0] == 1 else Step(self.scale[rows], self.centred)

    def cut(self, row: int, rows: slice) -> Step:
        scale = self.scale
        if scale.dim() == 3:
            scale = scale[min(row, scale.shape[0] - 1), rows if scale.shape[1] > 1 else slice(None)]
        return Step(scale if scale.dim() == 2 else scale.reshape(1, -1), self.centred)


@dataclass
class Write:
    """One attention: from its weights and values to the sum that it is part of."""

    weights: torch.Tensor  # [b h s t]
    values: torch.Tensor  # [b h t e]
    projection: torch.Tensor | None = None  # [h·e d]
    steps: list[Step] = field(default_factory=list)  # between the projection and the sum
    rest: torch.Tensor | None = None  # [b s d] what it was added to: the row's own
    total: torch.Tensor | None = None  # [b s d] the sum
    norm: Step | None = None  # of the sum, where only the normed sum goes on (post-LN)
    output: torch.Tensor | None = None  # [b s d] the sum, or the normed sum

    @property
    def complete(self) -> bool:
        return self.projection is not None and self.total is not None

    def cut(self, row: int, rows: slice, cols: slice) -> Write:
        """One row of the batch without its padding: the same fields without b; values [h t d] are projected."""
        if (
            self.projection is None
            or self.rest is None
            or self.total is None
            or self.output is None
        ):
            raise ValueError("an attention that was not followed into the residual stream")
        values = self.values[row, :, cols]  # [h t e]
        weight = self.projection.reshape(len(values), values.shape[-1], -1)
        return Write(
            weights=self.weights[row, :, rows, cols],
            values=values @ weight,
            steps=[step.cut(row, rows) for step in self.steps],
            rest=self.rest[row, rows],
            total=self.total[row, rows],
            norm=None if self.norm is None else self.norm.cut(row, rows),
            output=self.output[row, rows],
        )

    def parts(self, rows: slice = slice(None)) -> torch.Tensor:
        """[s t d] what each token adds to each row, after `cut`, as far as the output; the rest not included."""
        found = torch.einsum("hst,htd->std", self.weights[:, rows], self.values)
        for step in self.steps:
            found = step.of_rows(rows)(found)
        return found if self.norm is None else self.norm.of_rows(rows)(found)

    def own(self, rows: slice = slice(None)) -> torch.Tensor:
        """[s d] the rest of each row, as far as the output."""
        if self.rest is None:
            raise ValueError("an attention that was not followed into the residual stream")
        rest = self.rest[rows]
        if self.norm is None:
            return rest
        norm = self.norm.of_rows(rows)
        return norm.centre(rest) * norm.scale


@dataclass
class Place:
    """Where on its way a tensor stands: at the heads, behind the projection, or in the sum."""

    tensor: torch.Tensor  # kept alive, or another tensor could take its id
    write: Write
    stage: str  # heads | branch | sum


class Writes(Products):
    """Follows every attention of a forward pass into the residual stream."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: dict[int, Write] = {}
        self._places: dict[int, Place] = {}
        self._behind: dict[
            int, tuple[torch.Tensor, set[int]]
        ] = {}  # by id: the sums that a tensor was made from

    @property
    def in_order(self) -> list[Write]:
        """What each attention writes, in the order in which they ran."""
        return [self.writes[number] for number in sorted(self.writes)]

    @property
    def complete(self) -> bool:
        """Every attention was followed into the residual stream."""
        return bool(self.writes) and all(write.complete for write in self.writes.values())

    def product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, multiply: Any
    ) -> torch.Tensor:
        result = super().product(mark, weights, values, multiply)
        shape = (*mark.heads, *weights.shape[-2:])
        own = mark.per_head(values.detach())
        write = Write(weights.detach().reshape(shape), own.expand(*mark.heads, *own.shape[-2:]))
        self.writes[mark.number] = write
        self._places[id(result)] = Place(result, write, "heads")
        return result

    def other(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        given = list(tensors_in((*args, *kwargs.values())))
        places = [self._places.get(id(tensor)) for tensor in given]
        behind = set().union(*(self._behind[id(t)][1] for t in given if id(t) in self._behind))
        behind |= {
            id(place.write) for place in places if place is not None and place.stage == "sum"
        }
        if behind:
            for made in tensors_in([result]):
                self._behind[id(made)] = (made, behind)
        if isinstance(result, torch.Tensor) and any(places):
            self.follow(name, args, kwargs, given, places, result)
        return result

    def follow(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        given: list[torch.Tensor],
        places: list[Place | None],
        result: torch.Tensor,
    ) -> None:
        """A function was applied to a tensor on its way: where does that leave its result?"""
        if name == "add" and len(given) == 2 and given[0].shape == given[1].shape:
            return self.meet(given, places, result)
        place = next(place for place in places if place is not None)
        write, others = place.write, [tensor for tensor in given if tensor is not place.tensor]
        stage = place.stage
        if name in SHAPES and place is places[0]:
            pass
        elif stage == "heads" and name in ("linear", "addmm"):
            write.projection = args[2] if name == "addmm" else args[1].mT
            stage = "branch"
        elif (
            stage == "branch"
            and name == "mul"
            and (factors := [a for a in args if a is not place.tensor])
        ):
            factor = factors[0].detach() if others else factors[0]  # a tensor, or a number
            write.steps.append(
                Step(torch.as_tensor(factor, dtype=result.dtype, device=result.device))
            )
        elif stage == "branch" and name == "layer_norm":
            write.steps.append(normed(args, kwargs))
        elif stage == "sum" and name == "layer_norm":
            write.norm, write.output = normed(args, kwargs), result.detach()
            return
        else:
            return
        self._places[id(result)] = Place(result, write, stage)

    def meet(
        self, given: list[torch.Tensor], places: list[Place | None], result: torch.Tensor
    ) -> None:
        """An addition: a branch joins the residual stream, or what was joined meets something more."""
        for place, other in zip(places, reversed(given), strict=True):
            if place is None or place.stage == "heads":
                continue
            write = place.write
            if place.stage == "sum" and id(write) in self._behind.get(id(other), (None, set()))[1]:
                # made from the sum itself: the next sublayer; the sum as it was goes on, so no norm belongs to it
                write.norm, write.output = None, write.total
                continue
            if place.stage == "sum" and self.joins(other):
                continue  # the next attention of the stream; it has its turn in this loop
            write.rest = other.detach() if place.stage == "branch" else write.rest + other.detach()  # type: ignore[operator]
            write.total = write.output = result.detach()
            self._places[id(result)] = Place(result, write, "sum")

    def joins(self, tensor: torch.Tensor) -> bool:
        place = self._places.get(id(tensor))
        return place is not None and place.stage == "branch"


def normed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Step:
    """A layer norm with its deviation taken as given."""
    x, shape = args[0].detach(), args[1]
    weight = kwargs.get("weight", args[2] if len(args) > 2 else None)
    eps = kwargs.get("eps", args[4] if len(args) > 4 else 1e-5)
    axes = tuple(range(-len(shape), 0))
    scale = (x.var(axes, unbiased=False, keepdim=True) + eps).rsqrt()
    return Step(scale if weight is None else scale * weight.detach(), centred=True)
