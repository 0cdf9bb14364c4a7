"""The page of an audit of attention: verdict, table, histograms, adversaries, and texts word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from raison.show.audit_rows import AuditedText, AuditReport, SpreadOfTexts, audit_rows
from raison.show.colour_scale import METHOD_HUES
from raison.show.evaluation_tables import warning_of_few_evaluated_texts
from raison.show.html.audit_plots import adversaries_svg, histogram_svg, words_svg
from raison.show.html.document import (
    STYLE,
    colour_rules_css,
    html_element,
    page_without_script,
    safe_html,
)

__all__ = ["audit_page"]

AGREEMENT = "Agreement of attention with importance (Kendall's τ-b; P2 Figures 1 and 4, Table 6)"
ENTROPY = "Entropy, from 0 (one word) to 1 (all words alike; P2 Figure 2, Table 1)"
OTHER_ATTENTION = "largest JSD of an attention with the same answer"
LARGEST_JSD = float(np.log(2))
TABLE_HEAD = (
    '<div class="scroll"><table><tr><th>measured</th><th>value (± deviation)</th>'
    "<th>interval of the mean (95 %), texts</th></tr>"
)
PLOT_STYLE = (
    f"svg rect.m0 {{ fill: {METHOD_HUES[0]}; stroke: none; }}\n"
    "figure { margin: 0.5rem 0; } figure svg { max-width: 100%; height: auto; }\n"
)


def audit_page(audit: AuditReport) -> str:
    """The whole page."""
    title = f"Can the attention of {audit.model} be trusted?"
    body = [
        *audit_verdict_html(audit, title),
        *audit_table_html(audit),
        *audit_histograms_html(AGREEMENT, audit.agreement.by_title(), low=-1.0),
        *audit_histograms_html(ENTROPY, audit.entropy.by_title(), low=0.0),
        *other_attention_html(audit.instance),
    ]
    if audit.adversaries:
        body.append("<h2>Trained adversaries (P2 Table 5, P3 Figure 1)</h2>")
        body.append(adversaries_svg(audit.adversaries))
    body += audited_texts_html(audit.texts)
    for note in [*audit.notes, *warning_of_few_evaluated_texts(audit.count)]:
        body.append(f'<p class="note">{safe_html(note)}</p>')
    return page_without_script(title, STYLE + colour_rules_css(METHOD_HUES) + PLOT_STYLE, body)


def audit_verdict_html(audit: AuditReport, title: str) -> Iterator[str]:
    """The verdict, and the reasons for it."""
    *reasons, verdict = audit.verdict()
    yield f"<h1>{safe_html(title)}</h1>"
    yield f"<p><strong>{safe_html(verdict)}</strong></p>"
    yield "<ul>"
    for reason in reasons:
        yield f"<li>{safe_html(reason)}</li>"
    yield "</ul>"


def audit_table_html(audit: AuditReport) -> Iterator[str]:
    """All numbers."""
    yield TABLE_HEAD
    for row in audit_rows(audit):
        cells = [html_element("td", safe_html(text)) for text in (row.name, row.value, row.about)]
        yield html_element("tr", *cells)
    yield "</table></div>"


def audit_histograms_html(
    title: str, spreads: Mapping[str, SpreadOfTexts], *, low: float
) -> Iterator[str]:
    """How numbers from `low` to 1 are spread over the texts, a histogram for each."""
    yield f"<h2>{safe_html(title)}</h2>"
    yield '<div class="curves">'
    for name, spread in spreads.items():
        if spread.count > 1:
            yield histogram_svg(name, spread.values, low, 1.0)
    yield "</div>"


def other_attention_html(spread: SpreadOfTexts | None) -> Iterator[str]:
    """How far attention can be from the model's own without another answer."""
    if spread is not None and spread.count > 1:
        yield "<h2>Other attention, the same answer (Jain &amp; Wallace 2019)</h2>"
        yield '<div class="curves">'
        yield histogram_svg(OTHER_ATTENTION, spread.values, 0.0, LARGEST_JSD)
        yield "</div>"


def audited_texts_html(texts: Sequence[AuditedText]) -> Iterator[str]:
    """Texts word by word."""
    if not texts:
        return
    note = "Colour: attention."
    if any(len(text.probability) > 1 for text in texts):
        note += " Line: the probability of the answer from each word alone, from 0 to 1."
    yield "<h2>Texts, word by word (P3 Figures 2 to 7)</h2>"
    yield f'<p class="note">{note}</p>'
    for text in texts:
        yield audited_text_html(text) + words_svg(text)


def audited_text_html(text: AuditedText) -> str:
    """A text, its words coloured by attention."""
    flat = 3 / max(3, len(text.attention))  # attention that is the same for all words is pale
    most = max([flat, *text.attention])
    words = []
    for token, share in zip(text.tokens, text.attention, strict=True):
        shade = round(10 * share / most)
        exact = f"{share:.3f}"
        words.append(html_element("b", safe_html(token), class_=f"f{shade}", title=exact))

    label = safe_html(text.predicted)
    if text.predicted != text.label:
        label += f", labelled {safe_html(text.label)}"
    title = html_element("p", label, class_="label")
    return title + html_element("p", " ".join(words), class_="text")
