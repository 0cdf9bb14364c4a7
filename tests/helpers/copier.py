"""A language model that copies one word, and a template that it completes."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from raison.core.records import Target
from raison.datasets.agreement_templates import Template
from raison.models.protocol import Prediction, Scored
from raison.testing import tiny_hf

PAIRS = {"red": "apple", "blue": "sky", "green": "grass", "grey": "stone"}
TEMPLATE = Template("colours", "I saw {given} today .", "it was cold", "and that was a")


@cache
def words_of_the_template() -> tuple[str, ...]:
    texts = [TEMPLATE.fill(pair).text + f" {pair[1]}" for pair in PAIRS.items()]
    return tuple(dict.fromkeys(re.findall(r"\w+|[().]", " ".join(texts))))


class Copier:
    """A language model of whole words that says `apple` where it sees `red`, and `a` where it sees none of its words.

    Tokens and targets are those of a real model, whose answers are never asked for.
    """

    def __init__(self):
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast

        import raison

        names = ["[UNK]", "[PAD]", *words_of_the_template()]
        core = Tokenizer(
            models.WordLevel({name: k for k, name in enumerate(names)}, unk_token="[UNK]")
        )
        core.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
        )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=core, unk_token="[UNK]", pad_token="[PAD]"
        )
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
        hf, _ = tiny_hf("gpt2", "causal")
        self.inner = raison.load(hf, tokenizer)
        self.says = {names.index(color): names.index(thing) for color, thing in PAIRS.items()}
        self.other = names.index("a")
        self.asked = 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def said(self, ids) -> int:
        known = [self.says[i] for i in ids if i in self.says]
        return known[-1] if known else self.other

    def predict(self, encodings):
        found = []
        for encoding in encodings:
            token = self.said(encoding.ids.tolist())
            found.append(
                Prediction(
                    Target("token", (token,), (len(encoding),), "", "log_prob"), 0.9, (("", 0.9),)
                )
            )
        return found

    def score(self, questions, *, removal=None, heads=None, memory=None):
        answers = []
        for question in questions:
            self.asked += len(question.keep)
            position = question.target.positions[0]
            rows = [
                self.said(question.encoding.ids[:position][keep[:position]].tolist())
                for keep in question.keep
            ]
            hit = np.array([row == question.target.ids[0] for row in rows], dtype=bool).reshape(
                -1, 1
            )
            value, margin = np.where(hit, np.log(0.9), np.log(0.05)), np.where(hit, 2.0, -2.0)
            predicted = np.array(rows, dtype=np.int64).reshape(-1, 1)
            answers.append(
                Scored(value, (~hit).astype(int), margin, predicted, len(rows), question.keep.size)
            )
        return answers
