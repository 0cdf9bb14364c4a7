"""A small treebank, and where the large one lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from raison.datasets import conllu
from raison.datasets.conllu import Sentence

EWT = "ud_english_ewt/en_ewt-ud-dev.conllu.gz"

TREEBANK = """\
# sent_id = one
# text = The old film didn't surprise the town, and the town loved the film quickly.
1	The	the	DET	DT	_	3	det	_	_
2	old	old	ADJ	JJ	_	3	amod	_	_
3	film	film	NOUN	NN	_	6	nsubj	_	_
4-5	didn't	_	_	_	_	_	_	_	_
4	did	do	AUX	VBD	_	6	aux	_	_
5	n't	not	PART	RB	_	6	advmod	_	_
6	surprise	surprise	VERB	VB	_	0	root	_	_
7	the	the	DET	DT	_	8	det	_	_
8	town	town	NOUN	NN	_	6	obj	_	SpaceAfter=No
9	,	,	PUNCT	,	_	13	punct	_	_
10	and	and	CCONJ	CC	_	13	cc	_	_
11	the	the	DET	DT	_	12	det	_	_
12	town	town	NOUN	NN	_	13	nsubj:pass	_	_
12.1	was	be	AUX	VBD	_	_	_	_	_
13	loved	love	VERB	VBD	_	6	conj	_	_
14	the	the	DET	DT	_	15	det	_	_
15	film	film	NOUN	NN	_	13	obj	_	_
16	quickly	quickly	ADV	RB	_	13	advmod	_	SpaceAfter=No
17	.	.	PUNCT	.	_	6	punct	_	_

# sent_id = two
1	She	she	PRON	PRP	_	2	nsubj	_	_
2	left	leave	VERB	VBD	_	0	root	_	_
3	the	the	DET	DT	_	5	det	_	_
4	small	small	ADJ	JJ	_	5	amod	_	_
5	town	town	NOUN	NN	_	2	obj	_	SpaceAfter=No
6	.	.	PUNCT	.	_	2	punct	_	_
"""


@pytest.fixture
def treebank(tmp_path) -> Path:
    path = tmp_path / "small.conllu"
    path.write_text(TREEBANK, encoding="utf-8")
    return path


@pytest.fixture
def sentences(treebank) -> list[Sentence]:
    return conllu.read_conllu(treebank)
