"""Gradients along paths and around a text, by plain transformers and hooks of their own."""

from __future__ import annotations

import numpy as np
import torch

import raison
from raison.testing import FAMILIES, tiny_hf

TEXT = "The film is a lovely surprise, isn't it?"


OTHER = "A dull story with good actors."


TASKS = [(family, tasks[0]) for family, tasks in FAMILIES.items()]


def explained(model, text=TEXT, method="integrated_gradients", **how):
    return raison.explain(model, text, method, **{"units": "token", **how})


def token_scores(found):
    return np.array(found.parts["token_scores"])


class Literal:
    """f and ∂f/∂e of a raw transformers model at given word embeddings; nothing of raison's tracing."""

    def __init__(self, family, task):
        self.hf, self.tokenizer = tiny_hf(family, task)
        self.hf.set_attn_implementation("eager")
        self.task = task
        pair = task == "seq2seq"
        self.tables = [
            part.get_input_embeddings()
            for part in ([self.hf.get_encoder(), self.hf.get_decoder()] if pair else [self.hf])
        ]

    def streams(self, encoding, target):
        """Axis indices of each stream, as far as the model reads."""
        size = target.positions[-1] if target.generated else len(encoding)
        index = np.arange(size)
        if self.task != "seq2seq":
            return [index]
        source = encoding.segment[:size] == 0
        return [index[source], index[~source]]

    def rows(self, encoding, target):
        return [
            self.tables[s](torch.tensor(encoding.ids[i])).detach()
            for s, i in enumerate(self.streams(encoding, target))
        ]

    def slope(self, encoding, target, rows):
        """(f, gradients per stream) with the embeddings of each stream replaced."""
        leaves = [r.clone().requires_grad_(True) for r in rows]
        ids = [torch.tensor(encoding.ids[i])[None] for i in self.streams(encoding, target)]
        handles = [
            table.register_forward_hook(lambda module, args, out, leaf=leaf: leaf[None])
            for table, leaf in zip(self.tables, leaves, strict=True)
        ]
        try:
            names = ("input_ids", "decoder_input_ids") if self.task == "seq2seq" else ("input_ids",)
            extra = {}
            if encoding.types is not None:
                extra["token_type_ids"] = torch.tensor(encoding.types)[None]
            out = self.hf(
                **dict(zip(names, ids, strict=True)),
                attention_mask=torch.ones_like(ids[0]),
                **extra,
            )
            value = self.value(out, encoding, target)
            return float(value.detach()), torch.autograd.grad(value, leaves)
        finally:
            for handle in handles:
                handle.remove()

    def value(self, out, encoding, target):
        if self.task == "classification":
            logits = out.logits[0]
            rival = 0.0 if target.contrast is None else logits[target.contrast[0]]
            return logits[target.ids[0]] - rival
        if self.task == "tagging":
            return sum(
                out.logits[0, p, i] for p, i in zip(target.positions, target.ids, strict=True)
            )
        if self.task == "qa":
            first, last = target.positions
            return out.start_logits[0, first] + out.end_logits[0, last]
        before = int((encoding.segment == 0).sum()) if self.task == "seq2seq" else 0
        log_prob = out.logits[0].log_softmax(-1)
        return sum(
            log_prob[p - 1 - before, i] for p, i in zip(target.positions, target.ids, strict=True)
        )

    def integrated(self, encoding, target, absent, moved, places):
        """[t] mean over places of ⟨e − e′, gradient⟩, one place at a time; and f(e), f(e′)."""
        streams, own = self.streams(encoding, target), self.rows(encoding, target)
        start = []
        for stream, (index, rows) in enumerate(zip(streams, own, strict=True)):
            rows = rows.clone()
            for place, t in enumerate(index):
                if moved[t]:
                    rows[place] = absent(self.tables[stream])
            start.append(rows)
        scores = np.zeros(len(encoding))
        for place in places:
            _, gradient = self.slope(
                encoding, target, [b + place * (e - b) for b, e in zip(start, own, strict=True)]
            )
            for index, g, b, e in zip(streams, gradient, start, own, strict=True):
                scores[index] += ((e - b) * g).sum(-1).numpy() / len(places)
        return scores, self.slope(encoding, target, own)[0], self.slope(encoding, target, start)[0]


def linear_model():
    """Logits that are linear in the word embeddings: no blocks, no norms, the mean of the tokens, one matrix."""
    from raison.models.mean_pooled_bert import MeanPooledBert

    hf, tokenizer = tiny_hf("bert", "classification")
    config = hf.config
    config.num_hidden_layers, config.num_labels = 0, 2
    torch.manual_seed(0)
    plain = MeanPooledBert(config).double().eval()
    plain.bert.embeddings.LayerNorm = torch.nn.Identity()
    with torch.no_grad():
        plain.bert.embeddings.word_embeddings.weight.normal_()
        plain.classifier.weight.normal_()
    return plain, raison.load(plain, tokenizer)
