"""Templates of sentences whose last word agrees with a word far before it, and filling them with word pairs.

Pairs of words come from the analogies, sentences from here: the antecedent stands in the first sentence, the answer is
the next word after the text. What stands in brackets has nothing to do with either (P0, section 8.1, which has other
sentences).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from raison.core.records import Example, Span

__all__ = ["TEMPLATES", "Template", "fill_templates", "word_pairs"]

GIVEN = "{given}"

WordPair = tuple[str, str]


@dataclass(frozen=True)
class Template:
    """Two sentences about a relation of the analogies, and one in brackets between them."""

    relation: str
    first: str  # has {given} in it
    aside: str  # about something else
    second: str  # goes on with the answer
    backwards: bool = False  # the second word of a pair is given, the first is the answer

    def fill(self, pair: WordPair) -> Example:
        """The example of a pair: gold is the antecedent, `meta["aside"]` the characters from ( to the full stop."""
        given, answer = pair
        if self.backwards:
            given, answer = answer, given

        first = self.first.replace(GIVEN, given)
        aside = f"({self.aside})."
        given_start = self.first.index(GIVEN)
        aside_start = len(first) + 1
        return Example(
            f"{first} {aside} {self.second}",
            id=f"{self.relation}:{given}:{answer}",
            target=f" {answer}",
            label=answer,
            gold=(Span(given_start, given_start + len(given)),),
            meta={
                "relation": self.relation,
                "given": given,
                "aside": (aside_start, aside_start + len(aside)),
                "without": f"{first} {self.second}",
            },
        )


TEMPLATES: tuple[Template, ...] = (
    Template(
        relation="capital-common-countries",
        first="We spent two weeks in {given} last spring and saw most of the country.",
        aside="My suitcase was too heavy",
        second="Of all the places we liked best the capital city,",
        backwards=True,
    ),
    Template(
        relation="capital-world",
        first="My cousin has moved to {given} and likes it there.",
        aside="She still owes me a book",
        second="It is her first year in the country of",
    ),
    Template(
        relation="city-in-state",
        first="The train stopped in {given} for an hour.",
        aside="Somebody had lost a glove",
        second="It was my first visit to the great state of",
    ),
    Template(
        relation="family",
        first="The first page is about a {given}.",
        aside="The paper has turned yellow",
        second="The next page is about a",
    ),
    Template(
        relation="gram1-adjective-to-adverb",
        first="She is a very {given} worker.",
        aside="Her hat is green",
        second="No matter what she does, she does it very",
    ),
    Template(
        relation="gram2-opposite",
        first="Some people find it {given}.",
        aside="We had soup for lunch",
        second="Many others, however, find it",
    ),
    Template(
        relation="gram3-comparative",
        first="The old one was already {given}.",
        aside="It came in a paper box",
        second="The new one is even",
    ),
    Template(
        relation="gram4-superlative",
        first="It is a very {given} building.",
        aside="The postman wears a red cap",
        second="In fact, it is one of the",
    ),
    Template(
        relation="gram5-present-participle",
        first="My sister likes to {given}.",
        aside="She has a red bicycle",
        second="When I came home, she was",
    ),
    Template(
        relation="gram6-nationality-adjective",
        first="His parents came here from {given} long ago.",
        aside="They sold shoes at first",
        second="At home the family still cooks and speaks",
    ),
    Template(
        relation="gram7-past-tense",
        first="My brother keeps {given} all the time.",
        aside="His room is blue",
        second="This morning, for example, he",
    ),
    Template(
        relation="gram8-plural",
        first="At first I could see only one {given}.",
        aside="My coffee was getting cold",
        second="Then I looked again and saw that there were two",
    ),
    Template(
        relation="gram9-plural-verbs",
        first="I often {given} when I am alone.",
        aside="The kitchen is very small",
        second="My sister is the same: when she is alone, she often",
    ),
)


def word_pairs(examples: Iterable[Example]) -> dict[str, list[WordPair]]:
    """Pairs of words by relation, each once, in the order of the analogies."""
    pairs: dict[str, list[WordPair]] = {}
    for example in examples:
        a, b, c, d = example.meta["words"]
        of_relation = pairs.setdefault(example.meta["relation"], [])
        for pair in ((a, b), (c, d)):
            if pair not in of_relation:
                of_relation.append(pair)
    return pairs


def fill_templates(
    examples: Iterable[Example], templates: Iterable[Template] = TEMPLATES
) -> dict[str, list[Example]]:
    """Examples by relation: every pair of words in the template of its relation."""
    pairs = word_pairs(examples)
    filled = {}
    for template in templates:
        of_relation = pairs.get(template.relation, [])
        filled[template.relation] = [template.fill(pair) for pair in of_relation]
    return filled
