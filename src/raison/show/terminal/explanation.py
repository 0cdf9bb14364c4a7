"""The printer of explanations in the terminal: headline, text in colours, numbers; rationales, methods, a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from raison.core.records import Explanation
from raison.show.explanation_groups import group_explanations
from raison.show.explanation_sentences import (
    explanation_notes,
    headline_phrases,
    provenance_phrases,
    telling_diagnostics,
)
from raison.show.method_difference import differences_from_first_method
from raison.show.rationale_matrix import matrix_facts, matrix_of_rationales
from raison.show.rationale_sentences import is_rationale
from raison.show.terminal.agreement import terminal_agreement
from raison.show.terminal.columns import terminal_passage_grid
from raison.show.terminal.matrix import terminal_matrix
from raison.show.terminal.methods import terminal_difference, terminal_methods_tables
from raison.show.terminal.rationale import (
    terminal_certificate_lines,
    terminal_grounded_answer,
    terminal_rationale_line,
    terminal_rationale_text,
    terminal_rationale_warnings,
)
from raison.show.terminal.search_path import terminal_search_path
from raison.show.terminal.strongest_units import (
    strongest_units_on_side,
    terminal_selected_units,
    terminal_strongest_units,
)
from raison.show.terminal.style import TerminalStyle, terminal_console
from raison.show.text_formats import clean_text
from raison.show.text_pieces import is_unproved_selection, text_passages

__all__ = ["render", "render_many"]


def render(
    explanation: Explanation, console: Console | None = None, *, paper: str | None = None
) -> None:
    """Print one explanation; `paper` is dark or light where the terminal's background is known."""
    printer = ExplanationPrinter.on(console, paper)
    printer.print_explanation(explanation)


def render_many(
    explanations: Iterable[Explanation],
    console: Console | None = None,
    *,
    paper: str | None = None,
    difference: bool = False,
) -> None:
    """Print explanations below each other; methods that explain the same thing end in a table of them all and in how
    far they agree, and rationales of many targets of one text make a matrix. `difference` adds where the first method
    gives more or less than the others."""
    printer = ExplanationPrinter.on(console, paper)
    for place, group in enumerate(group_explanations(list(explanations))):
        if place:
            printer.print_rule()
        if group.kind == "matrix":
            printer.print_matrix(group.members)
        elif group.kind == "methods":
            printer.print_methods(group.members, difference=difference)
        else:
            printer.print_explanation(group.members[0])


@dataclass(frozen=True)
class ExplanationPrinter:
    """A console, and how pieces look there."""

    console: Console
    style: TerminalStyle

    @classmethod
    def on(cls, console: Console | None, paper: str | None) -> ExplanationPrinter:
        """A printer on this console, or on the terminal itself."""
        console = console or terminal_console()
        return cls(console, TerminalStyle.of(console, paper))

    @property
    def width(self) -> int:
        """Cells of a line between the margins."""
        return self.console.width - 2

    def print_part(self, part: RenderableType) -> None:
        self.console.print(Padding(part, (0, 1), expand=False))

    def print_parts(self, parts: Iterable[RenderableType]) -> None:
        """Parts below each other, and an empty line."""
        for part in parts:
            self.print_part(part)
        self.console.print()

    def print_facts(self, facts: Sequence[str]) -> None:
        """Facts in a quiet line."""
        self.print_part(Text(self.style.dot.join(facts), style="dim"))

    def print_rule(self) -> None:
        self.console.print(Rule(style="dim", characters=self.style.either("─", "-")))

    # -- one explanation ----------------------------------------------------------------------------------

    def print_explanation(self, explanation: Explanation) -> None:
        self.print_headline(explanation)
        self.print_facts(provenance_phrases(explanation))
        self.console.print()
        self.print_text_and_numbers(explanation, with_table=True)

    def print_headline(self, explanation: Explanation) -> None:
        """The model and what it says."""
        first, *others = headline_phrases(explanation)
        line = Text(overflow="fold")
        line.append(clean_text(explanation.model) + self.style.dot, "dim")
        line.append(first, "bold")
        if others:
            line.append(self.style.dot + self.style.dot.join(others))
        self.console.print()
        self.print_part(line)

    def print_text_and_numbers(self, explanation: Explanation, *, with_table: bool) -> None:
        if is_rationale(explanation):
            self.print_rationale(explanation, with_table=with_table)
        else:
            self.print_scores(explanation, with_table=with_table)

    def print_scores(self, explanation: Explanation, *, with_table: bool) -> None:
        """The text in the colours of its scores, what must be known about them, and the strongest in a table."""
        speak_for = strongest_units_on_side(explanation.scores, 1)
        speak_against = strongest_units_on_side(explanation.scores, -1)
        marked = frozenset(speak_for + speak_against)
        passages = text_passages(explanation)
        texts = [self.style.scored_text(passage, explanation, marked) for passage in passages]
        self.print_part(terminal_passage_grid(passages, texts))
        diagnostics = telling_diagnostics(explanation)
        if diagnostics:
            self.print_facts(diagnostics)
        self.print_notes(explanation)
        self.console.print()

        if explanation.selected is not None:
            self.print_parts([terminal_selected_units(explanation, self.style)])
        is_in_or_out = is_unproved_selection(explanation)  # and needs no table
        if with_table and explanation.scores.any() and not is_in_or_out:
            table = terminal_strongest_units(explanation, self.style, self.console.width)
            self.print_parts([table])

    def print_notes(self, explanation: Explanation) -> None:
        """What a reader must know before trusting the picture."""
        unread = "in grey" if self.style.coloured else "in {braces}"
        for note in explanation_notes(explanation, unread):
            self.print_part(Text(note, style="dim italic"))

    def print_rationale(self, explanation: Explanation, *, with_table: bool) -> None:
        """The warnings, the text or the passages of an answer, the path and the certificate."""
        warnings = terminal_rationale_warnings(explanation, self.style)
        if warnings:
            self.print_parts(warnings)

        grounding = explanation.grounding
        if grounding is None:
            self.print_part(terminal_rationale_text(explanation, self.style))
        else:
            for part in terminal_grounded_answer(explanation, grounding, self.style):
                self.print_part(part)
        self.print_notes(explanation)
        self.console.print()

        self.print_parts([terminal_rationale_line(explanation, self.style)])
        if with_table:
            path = terminal_search_path(explanation, self.style, self.width)
            if path is not None:
                self.print_parts([path])
        self.print_parts([terminal_certificate_lines(explanation, self.style)])

    # -- several explanations -----------------------------------------------------------------------------

    def print_methods(self, explanations: Sequence[Explanation], *, difference: bool) -> None:
        """Methods about the same thing: each by itself, all in a table, how far they agree, and where they differ."""
        self.print_headline(explanations[0])
        self.console.print()
        for explanation in explanations:
            self.print_facts(provenance_phrases(explanation))
            self.print_text_and_numbers(explanation, with_table=False)
        for table in terminal_methods_tables(explanations, self.style, self.width):
            self.print_parts([table])

        scored = [explanation for explanation in explanations if not is_rationale(explanation)]
        if len(scored) < 2:  # a rationale is in or out
            return
        self.print_parts(terminal_agreement(scored, self.style, self.width))
        if difference:
            for each in differences_from_first_method(scored):
                self.print_parts(terminal_difference(each, self.style, self.width))

    def print_matrix(self, explanations: Sequence[Explanation]) -> None:
        """Rationales of one text as a matrix."""
        rows = matrix_of_rationales(explanations)
        title = Text(clean_text(rows.rows[0].model) + self.style.dot, "dim", overflow="fold")
        title.append(f"{len(explanations)} rationales of one text", "bold not dim")
        self.console.print()
        self.print_part(title)
        self.print_facts(matrix_facts(rows))
        self.console.print()
        self.print_parts(terminal_matrix(rows, self.style, self.width))
