"""What heads look at, counted literally: loops over words and characters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from raison.studies.head_statistics import RELATIONS


def literal(hf, tokenizer, sentences, causal: bool) -> dict:
    """P4's counting written out, one pair and one query at a time, on transformers' own attention maps."""
    hf.set_attn_implementation("eager")
    config = hf.config
    shape = (config.num_hidden_layers, config.num_attention_heads)
    hits, pairs = Counter(), Counter()
    distances = {k: Counter() for k in RELATIONS}
    offsets, queries = Counter(), 0
    for sentence in sentences:
        encoded = tokenizer(sentence.text, return_offsets_mapping=True, return_tensors="pt")
        spans = encoded.pop("offset_mapping")[0].tolist()
        special = [
            part is None for part in encoded.sequence_ids(0)
        ]  # an unknown word is no special token
        with torch.no_grad():
            maps = hf(
                **{k: v for k, v in encoded.items() if k != "token_type_ids"},
                output_attentions=True,
            ).attentions
        owner = []
        for (a, b), extra in zip(spans, special, strict=True):
            while a < b and sentence.text[a].isspace():
                a += 1
            inside = [
                n
                for n, w in enumerate(sentence.words)
                if w.start <= a < w.end and not extra and a < b
            ]
            owner.append(inside[0] if inside else None)
        best_keys = torch.stack(maps)[:, 0].argmax(-1)  # [l h s]
        for n, word in enumerate(sentence.words):
            relation = word.relation.split(":")[0]
            ends = (
                [t for t, o in enumerate(owner) if o == n],
                [t for t, o in enumerate(owner) if o == word.head],
            )
            if relation not in RELATIONS or not all(ends):
                continue
            query, key = ends
            if causal:
                query, key = sorted(ends, reverse=True)
                if key[0] == 0:
                    continue
            pairs[relation] += 1
            distances[relation][n - word.head] += 1
            for layer, head in np.ndindex(*shape):
                hits[relation, layer, head] += (
                    int(best_keys[layer, head, query[-1 if causal else 0]]) in key
                )
        for i, extra in enumerate(special):
            if extra or (causal and i == 0):
                continue
            queries += 1
            for layer, head in np.ndindex(*shape):
                offsets[layer, head, int(best_keys[layer, head, i]) - i] += 1
    best = {}
    for layer, head in np.ndindex(*shape):
        found = {r: c for (ly, h, r), c in offsets.items() if (ly, h) == (layer, head) and r != 0}
        best[layer, head] = max(found.values(), default=0) / queries
    return {
        "hits": hits,
        "pairs": pairs,
        "distances": distances,
        "best": best,
        "queries": queries,
        "shape": shape,
    }
