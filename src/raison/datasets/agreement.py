"""Sentences whose last word agrees with a word far before it, with something else in brackets in between.

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
        "capital-common-countries",
        "We spent two weeks in {given} last spring and saw most of the country.",
        "My suitcase was too heavy",
        "Of all the places we liked best the capital city,",
        backwards=True,
    ),
    Template(
        "capital-world",
        "My cousin has moved to {given} and likes it there.",
        "She still owes me a book",
        "It is her first year in the country of",
    ),
    Template(
        "city-in-state",
        "The train stopped in {given} for an hour.",
        "Somebody had lost a glove",
        "It was my first visit to the great state of",
    ),
    Template(
        "family",
        "The first page is about a {given}.",
        "The paper has turned yellow",
        "The next page is about a",
    ),
    Template(
        "gram1-adjective-to-adverb",
        "She is a very {given} worker.",
        "Her hat is green",
        "No matter what she does, she does it very",
    ),
    Template(
        "gram2-opposite",
        "Some people find it {given}.",
        "We had soup for lunch",
        "Many others, however, find it",
    ),
    Template(
        "gram3-comparative",
        "The old one was already {given}.",
        "It came in a paper box",
        "The new one is even",
    ),
    Template(
        "gram4-superlative",
        "It is a very {given} building.",
        "The postman wears a red cap",
        "In fact, it is one of the",
    ),
    Template(
        "gram5-present-participle",
        "My sister likes to {given}.",
        "She has a red bicycle",
        "When I came home, she was",
    ),
    Template(
        "gram6-nationality-adjective",
        "His parents came here from {given} long ago.",
        "They sold shoes at first",
        "At home the family still cooks and speaks",
    ),
    Template(
        "gram7-past-tense",
        "My brother keeps {given} all the time.",
        "His room is blue",
        "This morning, for example, he",
    ),
    Template(
        "gram8-plural",
        "At first I could see only one {given}.",
        "My coffee was getting cold",
        "Then I looked again and saw that there were two",
    ),
    Template(
        "gram9-plural-verbs",
        "I often {given} when I am alone.",
        "The kitchen is very small",
        "My sister is the same: when she is alone, she often",
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


def fill_templates(examples: Iterable[Example], templates: Iterable[Template] = TEMPLATES) -> dict[str, list[Example]]:
    """Examples by relation: every pair of words in the template of its relation."""
    pairs = word_pairs(examples)
    filled = {}
    for template in templates:
        of_relation = pairs.get(template.relation, [])
        filled[template.relation] = [template.fill(pair) for pair in of_relation]
    return filled
