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
    closest = max(near or known, key=lambda pair: (known[pair], found[pair].shared))
    pair = f"{names[closest[0]]} and {names[closest[1]]}"
    common = found[closest].shared or 0
    shared = agreed(common, top(size), level)
    alone = [names[i] for i in apart(found, size)]
    if alike(size) > 1:
        are = "" if len(explanations) == 2 else "are closest and "
        said = f"{pair} {are}{shared}; {size} {level}s are too few to tell orders from chance."
    elif len(explanations) == 2:
        same_order, reverse = known[closest] >= alike(size), known[closest] <= -alike(size)
        order = f"order the {level}s in reverse" if reverse else f"order the {level}s alike"
        order = order if same_order or reverse else f"do not {order}"
        said = f"{pair} {shared} {'and' if (common > 0) == same_order else 'but'} {order}."
    elif not near:
        said = f"No two methods agree more than chance would; {pair} are closest and {shared}."
    elif all(tau >= alike(size) for tau in known.values()):
        said = f"All methods order the {level}s alike; {pair} are closest and {shared}."
    elif alone:
        said = f"{pair} {shared}; {listed(alone)} {'stand' if len(alone) > 1 else 'stands'} apart."
    else:
        said = f"{pair} are closest and {shared}; every method is close to at least one other."
    return " ".join([said, *same])


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
