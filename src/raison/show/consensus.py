"""What is said about several methods in words: their names, who agrees with whom, and who stands apart.

page/agreement.js says the same in the browser; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raison.core.records import Explanation
from raison.show import scale
from raison.show.agreement import Agreement, alike, apart, close, constant, top
from raison.show.wording import clean

__all__ = ["footnotes", "listed", "statement", "subject", "titles"]

MANY = 4  # names in a sentence


def subject(explanation: Explanation) -> tuple[str, ...]:
    """What is explained, apart from the method: explanations that agree in it can be compared."""
    records = explanation.encoding, explanation.units, explanation.target
    return (explanation.model, *(record.content() for record in records))


def titles(explanations: Sequence[Explanation]) -> list[str]:
    """A name for each method, as short as they can be told apart: without parameters, with them, with the removal."""
    specs = [clean(explanation.method) for explanation in explanations]
    removed = [f"{s}, {clean(e.removal)}" if e.removal else s for s, e in zip(specs, explanations, strict=True)]
    for names in ([spec.partition("(")[0] for spec in specs], specs, removed):
        if len(set(names)) == len(names):
            return names
    return [f"{name} #{place}" for place, name in enumerate(removed, start=1)]


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`; many are cut short."""
    shown = list(names) if len(names) <= MANY else [*names[: MANY - 1], f"{len(names) - MANY + 1} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def statement(explanations: Sequence[Explanation], found: Mapping[tuple[int, int], Agreement]) -> str:
    """Who agrees with whom, in a sentence or two; `found` holds every pair."""
    names, level, size = titles(explanations), explanations[0].units.level, len(explanations[0].units)
    if size < 2:
        return f"There is only one {level}: nothing to compare."
    flat = [name for name, each in zip(names, explanations, strict=True) if constant(each.scores)]
    same = [f"{listed(flat)} {'give' if len(flat) > 1 else 'gives'} every {level} the same score."] if flat else []
    known = {pair: each.tau for pair, each in found.items() if each.tau is not None}
    if not known:
        return " ".join([*same, "There is nothing to compare."])
    near = close(found, size)
    closest = max(known, key=lambda pair: (known[pair], found[pair].shared))
    if near and known[closest] < alike(size):  # these are close by their strongest units alone
        closest = max(near, key=lambda pair: (found[pair].shared, known[pair]))
    pair = f"{names[closest[0]]} and {names[closest[1]]}"
    common = found[closest].shared or 0
    shared = agreed(common, top(size), level)
    by_order = not near or known[closest] >= alike(size)
    most = f"{pair} {nearest(known[closest], common, size, level, by_order=by_order)}"
    alone = [names[i] for i in apart(found, size)]
    if alike(size) > 1:
        said = f"{pair} {shared}" if len(explanations) == 2 else most
        said = f"{said}; {size} {level}s are too few to tell orders from chance."
    elif len(explanations) == 2:
        same_order, reverse = known[closest] >= alike(size), known[closest] <= -alike(size)
        order = f"order the {level}s in reverse" if reverse else f"order the {level}s alike"
        order = order if same_order or reverse else f"do not {order}"
        said = f"{pair} {shared} {'and' if (common > 0) == same_order else 'but'} {order}."
    elif not near:
        said = f"No two methods agree more than chance would; {most}."
    elif all(tau >= alike(size) for tau in known.values()):
        said = f"All methods order the {level}s alike; {most}."
    elif alone:
        said = f"{most}; {listed(alone)} {'stand' if len(alone) > 1 else 'stands'} apart."
    else:
        said = f"{most}; every method is close to at least one other."
    return " ".join([said, *same])


def nearest(tau: float, shared: int, size: int, level: str, *, by_order: bool) -> str:
    """What the closest pair of methods has in common: first the measure by which it is the closest, then the other.

    `order the words most alike (tau-b 0.65) but share only 1 of the 3 strongest`.
    """
    k, rounded = top(size), hundredths(tau)
    if not by_order:
        return (
            f"share the most of the strongest {level}s ({shared} of {k}) but order the {level}s no more alike than "
            f"chance would (tau-b {rounded})"
        )
    order = f"order the {level}s most alike (tau-b {rounded})"
    if shared == k or k == 1:
        return f"{order} {'and' if shared else 'but'} {agreed(shared, k, level)}"
    if 2 * shared >= k:
        return f"{order} and share {shared} of the {k} strongest"
    return f"{order} but share {f'only {shared}' if shared else 'none'} of the {k} strongest"


def hundredths(value: float) -> str:
    """A number with two decimals, as the table of agreement rounds it; without a minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def agreed(shared: int, k: int, level: str) -> str:
    """`agree on 4 of the 5 strongest words`."""
    if k == 1:
        return f"agree on the strongest {level}" if shared else f"differ in the strongest {level}"
    if shared == k:
        return f"agree on the {k} strongest {level}s"
    return f"agree on {shared or 'none'} of the {k} strongest {level}s"


def footnotes(explanations: Sequence[Explanation], found: Mapping[tuple[int, int], Agreement]) -> list[str]:
    """What the words and numbers of an agreement mean."""
    names, level, size = titles(explanations), explanations[0].units.level, len(explanations[0].units)
    if all(each.tau is None for each in found.values()):
        return []
    least, said = alike(size), []
    if least <= 1:
        said.append(f"Alike: tau-b of {least:.3f} or more, which unrelated orders of {size} {level}s rarely reach.")
    if least <= 1 and len(explanations) > 2 and apart(found, size):
        said.append("Apart: alike to none, and sharing no more of the strongest with any than chance would.")
    plain = [name for name, each in zip(names, explanations, strict=True) if not scale.signed(each.scores)]
    if any(each.by_size for each in found.values()):
        one = len(plain) == 1
        said.append(
            f"{listed(plain)} {'has' if one else 'have'} no negative scores and {'is' if one else 'are'} compared "
            "with the others by size, without signs."
        )
    return said
