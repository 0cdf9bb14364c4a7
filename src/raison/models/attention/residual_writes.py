"""What each attention writes into the residual stream, token by token, followed through scaling and layer norms.

Behind the product of weights and values an attention output runs through a linear projection, perhaps a norm, and is
added to the residual stream, which may be normed in turn. All of that is linear once the deviations of the norms are
taken as given, so the output of a row splits into one part for each token it looked at, and a rest of its own. The way
is followed by what functions do to the tensors, so that no family has to be described.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from raison.models.attention.products import (
    SHAPES,
    Arguments,
    Function,
    Mark,
    Options,
    Products,
    Result,
)
from raison.models.relevance.rules import argument_of_function, tensors_in_arguments

__all__ = ["Step", "Write", "Writes"]


@dataclass
class Step:
    """A linear step along the width: x ↦ (x − mean x, if centred) · scale."""

    scale: torch.Tensor  # [b s d], or broadcast to it
    centred: bool = False

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x [.. s t d] of one row of the batch; `scale` [s d] is cut to it."""
        scale = self.scale.unsqueeze(-2)
        return self.centre(x) * scale

    def centre(self, x: torch.Tensor) -> torch.Tensor:
        """x without its mean, if it is taken away."""
        if not self.centred:
            return x
        mean = x.mean(-1, keepdim=True)
        return x - mean

    def of_rows(self, rows: slice) -> Step:
        """The step of some rows, after `cut`."""
        if self.scale.shape[0] == 1:
            return self
        return Step(self.scale[rows], self.centred)

    def cut(self, row: int, rows: slice) -> Step:
        """The step of one row of the batch without its padding: a scale [s d], or [1 d] for all."""
        scale = self.scale
        if scale.dim() == 3:
            last = len(scale) - 1
            scale = scale[min(row, last)]
            if len(scale) > 1:
                scale = scale[rows]
        if scale.dim() != 2:
            scale = scale.reshape(1, -1)
        return Step(scale, self.centred)


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
        projection = followed_tensor(self.projection)
        rest = followed_tensor(self.rest)
        total = followed_tensor(self.total)
        output = followed_tensor(self.output)

        values = self.values[row, :, cols]  # [h t e]
        heads, _, width = values.shape
        of_heads = projection.reshape(heads, width, -1)
        own = Write(
            weights=self.weights[row, :, rows, cols],
            values=values @ of_heads,
            steps=[step.cut(row, rows) for step in self.steps],
            rest=rest[row, rows],
            total=total[row, rows],
            output=output[row, rows],
        )
        if self.norm is not None:
            own.norm = self.norm.cut(row, rows)
        return own

    def parts(self, rows: slice = slice(None)) -> torch.Tensor:
        """[s t d] what each token adds to each row, after `cut`, as far as the output; the rest not included."""
        weights = self.weights[:, rows]
        found = torch.einsum("hst,htd->std", weights, self.values)
        steps = list(self.steps)
        if self.norm is not None:
            steps.append(self.norm)
        for step in steps:
            step_of_rows = step.of_rows(rows)
            found = step_of_rows(found)
        return found

    def own(self, rows: slice = slice(None)) -> torch.Tensor:
        """[s d] the rest of each row, as far as the output."""
        rest = followed_tensor(self.rest)[rows]
        if self.norm is None:
            return rest
        norm = self.norm.of_rows(rows)
        centred = norm.centre(rest)
        return centred * norm.scale


def followed_tensor(tensor: torch.Tensor | None) -> torch.Tensor:
    """A tensor of an attention that was followed all the way."""
    if tensor is None:
        raise ValueError("an attention that was not followed into the residual stream")
    return tensor


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
        # by id: the sums that a tensor was made from
        self._behind: dict[int, tuple[torch.Tensor, set[int]]] = {}

    @property
    def in_order(self) -> list[Write]:
        """What each attention writes, in the order in which they ran."""
        return [self.writes[number] for number in sorted(self.writes)]

    @property
    def complete(self) -> bool:
        """Every attention was followed into the residual stream."""
        for write in self.writes.values():
            if not write.complete:
                return False
        return bool(self.writes)

    def result_of_product(
        self, mark: Mark, weights: torch.Tensor, values: torch.Tensor, product: torch.Tensor
    ) -> torch.Tensor:
        *_, rows, columns = weights.shape
        by_head = weights.detach().reshape(*mark.heads, rows, columns)
        own = mark.per_head(values.detach())
        *_, tokens, width = own.shape
        values_by_head = own.expand(*mark.heads, tokens, width)
        write = Write(by_head, values_by_head)
        self.writes[mark.number] = write
        self._places[id(product)] = Place(product, write, "heads")
        return product

    def run_function(
        self, name: str, function: Function, args: Arguments, kwargs: Options
    ) -> Result:
        result = function(*args, **kwargs)
        everything = (*args, *kwargs.values())
        given = list(tensors_in_arguments(everything))
        places = [self._places.get(id(tensor)) for tensor in given]
        behind = self.sums_behind(given, places)
        if behind:
            for made in tensors_in_arguments([result]):
                self._behind[id(made)] = (made, behind)

        if isinstance(result, torch.Tensor) and any(places):
            if name == "add" and have_equal_shapes(given):
                self.follow_sum(given, places, result)
            else:
                self.follow_step(name, args, kwargs, places, result)
        return result

    def sums_behind(self, given: list[torch.Tensor], places: list[Place | None]) -> set[int]:
        """The sums that the arguments of a function are, or were made from."""
        behind: set[int] = set()
        for tensor, place in zip(given, places, strict=True):
            number = id(tensor)
            if number in self._behind:
                _, sums = self._behind[number]
                behind |= sums
            if place is not None and place.stage == "sum":
                behind.add(id(place.write))
        return behind

    def follow_step(
        self,
        name: str,
        args: Arguments,
        kwargs: Options,
        places: list[Place | None],
        result: torch.Tensor,
    ) -> None:
        """A function was applied to a tensor on its way: where does that leave its result?"""
        place = next(place for place in places if place is not None)
        write = place.write
        stage = place.stage
        only_moved = name in SHAPES and place is places[0]
        if only_moved:
            pass
        elif stage == "heads" and name == "linear":
            write.projection = args[1].mT
            stage = "branch"
        elif stage == "heads" and name == "addmm":
            write.projection = args[2]
            stage = "branch"
        elif stage == "branch" and name == "mul" and has_factor(args, place):
            step = scaling_step(args, place, result)
            write.steps.append(step)
        elif stage == "branch" and name == "layer_norm":
            step = layer_norm_step(args, kwargs)
            write.steps.append(step)
        elif stage == "sum" and name == "layer_norm":
            write.norm = layer_norm_step(args, kwargs)
            write.output = result.detach()
            return
        else:
            return
        self._places[id(result)] = Place(result, write, stage)

    def follow_sum(
        self, given: list[torch.Tensor], places: list[Place | None], result: torch.Tensor
    ) -> None:
        """An addition: a branch joins the residual stream, or what was joined meets something more."""
        for place, other in zip(places, reversed(given), strict=True):
            if place is None or place.stage == "heads":
                continue
            write = place.write
            if place.stage == "sum" and self.is_made_from_sum(other, write):
                # the next sublayer; the sum as it was goes on, so no norm belongs to it
                write.norm = None
                write.output = write.total
                continue
            if place.stage == "sum" and self.is_on_branch(other):
                continue  # the next attention of the stream; it has its turn in this loop

            rest = other.detach()
            if place.stage == "sum" and write.rest is not None:
                rest = write.rest + rest
            write.rest = rest
            total = result.detach()
            write.total = total
            write.output = total
            self._places[id(result)] = Place(result, write, "sum")

    def is_made_from_sum(self, tensor: torch.Tensor, write: Write) -> bool:
        """Whether a tensor was made from the sum that an attention is part of."""
        behind = self._behind.get(id(tensor))
        if behind is None:
            return False
        _, sums = behind
        return id(write) in sums

    def is_on_branch(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a branch that has not joined the residual stream yet."""
        place = self._places.get(id(tensor))
        return place is not None and place.stage == "branch"


def have_equal_shapes(tensors: list[torch.Tensor]) -> bool:
    """Whether these are two tensors of one shape."""
    if len(tensors) != 2:
        return False
    one, other = tensors
    return one.shape == other.shape


def has_factor(args: Arguments, place: Place) -> bool:
    """Whether a product has a factor besides the tensor on its way."""
    return any(value is not place.tensor for value in args)


def scaling_step(args: Arguments, place: Place, result: torch.Tensor) -> Step:
    """The step of a product with a tensor or a number."""
    factor = next(value for value in args if value is not place.tensor)
    if isinstance(factor, torch.Tensor):
        factor = factor.detach()
    return Step(torch.as_tensor(factor, dtype=result.dtype, device=result.device))


def layer_norm_step(args: Arguments, kwargs: Options) -> Step:
    """A layer norm with its deviation taken as given."""
    x = args[0].detach()
    shape = args[1]
    weight = argument_of_function(args, kwargs, 2, "weight")
    eps = argument_of_function(args, kwargs, 4, "eps", 1e-5)
    axes = tuple(range(-len(shape), 0))
    variance = x.var(axes, unbiased=False, keepdim=True)
    scale = (variance + eps).rsqrt()
    if weight is not None:
        scale = scale * weight.detach()
    return Step(scale, centred=True)
