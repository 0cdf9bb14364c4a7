"""Explanations with scores, made by hand: words as tokens, awkward texts, several methods about one."""

from __future__ import annotations

import numpy as np

from raison.core.findings import PredictionSummary
from raison.core.records import Encoding, Explanation, Target
from raison.core.text_splitting import split_words
from raison.core.units import group_tokens

NASTY = 'He said </script><b>hi</b><!-- & left \x1b[31mred\x1b[0m\x9b2J \u202eback\u2028 "quoted"'


def encode_words(*texts, names=None, specials=False, **changes):
    """Every word is a token; `specials` adds a free </s> behind each text, as encoder-decoders have it."""
    rows = []
    for segment, text in enumerate(texts):
        rows += [(text[a:b], segment, a, b) for a, b in split_words(text)]
        rows += [("</s>", segment, -1, -1)] * specials
    tokens, segment, start, end = zip(*rows, strict=True)
    names = names or {1: ("text",), 2: ("first", "second")}[len(texts)]
    size = np.arange(len(rows))
    fields = {
        "ids": size,
        "tokens": tokens,
        "segments": names,
        "texts": texts,
        "segment": segment,
        "start": start,
        "end": end,
        "positions": size,
        "fixed": np.zeros(len(rows), bool),
    }
    return Encoding(**{**fields, **changes})


def scored(*texts, scores=None, target=None, level="word", encoding=None, **fields):
    encoding = encoding or encode_words(*texts)
    target = target or Target("label", (1,), text="positive")
    units = group_tokens(encoding, level, target.free(encoding))
    if scores is None:
        scores = np.sin(np.arange(len(units)) * 2.4) * 3
    top = (("positive", 0.987),)
    prediction = PredictionSummary(
        "positive", is_target=target.text == "positive", probability=0.987, top=top
    )
    made = {
        "encoding": encoding,
        "units": units,
        "target": target,
        "scores": np.asarray(scores, float),
        "method": "occlusion(width=1)",
        "model": "tiny-sentiment",
        "removal": "mask",
        "prediction": prediction,
    }
    return Explanation(**{**made, **fields})


MOVIE = "A great, moving film; only the ending is dull."


SCORES = [0, 2.5, 0.01, 1.25, 0.05, 0, -0.3, 0, 0.05, 0, -1.5, 0]


CASES = {
    "plain": lambda: scored(MOVIE, scores=SCORES),
    "pair": lambda: scored("A man sleeps.", "Nobody is awake."),
    "cjk": lambda: scored("这部电影真的很好看 👩‍👩‍👧 とても面白い 👍🏽!"),
    "negative": lambda: scored(MOVIE, scores=-np.arange(12) / 10),
    "positive": lambda: scored(MOVIE, scores=np.arange(12) / 10),
    "zero": lambda: scored(MOVIE, scores=np.zeros(12)),
    "selected": lambda: scored(
        MOVIE, scores=SCORES, selected=[u in (1, 3) for u in range(12)], order=[1, 3]
    ),
    "nasty": lambda: scored(NASTY),
    "one": lambda: scored("Superb", scores=[1.5]),
    "long": lambda: scored(" ".join(f"word{i}" for i in range(300))),
    "tiny": lambda: scored(MOVIE, scores=np.array(SCORES) * 1e-9),
    "sentences": lambda: scored("It is good. Really good! But long…", level="sentence"),
}


def selection_of_rationalizer():
    """As a rationalizer gives it: how sure the selection was as scores, 0 for all that was not selected."""
    sure = [0, 0.89, 0, 0.93, 0, 0, 0, 0, 0, 0, 0.88, 0]
    return scored(
        MOVIE, scores=sure, selected=[score > 0 for score in sure], method="own", removal=None
    )


LOO = [0, 2.5, 0.01, 1.25, 0.05, 0, -0.3, 0, 0.05, 0, -1.5, 0]


NEAR = [0.1, 2.4, 0.02, 1.0, 0.3, 0.01, -0.2, 0, 0.04, 0.03, -1.1, -0.01]


SIZES = [0.1, 0.9, 0, 0.3, 0.2, 0.1, 0.5, 0.05, 0.4, 0.1, 0.7, 0]


NOISE = [0.3, 0.1, 0.8, 0.2, 0.9, 0.7, 0.1, 0.6, 0.05, 0.75, 0.2, 0.5]


def explained_by_methods(*scores, text=MOVIE, **fields):
    """One text, explained by a method for each list of scores."""
    names = [
        "leave_one_out",
        "lime(samples=64)",
        "gradient_norm",
        "random",
        *(f"method_{i}" for i in range(9)),
    ]
    return [
        scored(text, scores=each, method=name, **fields)
        for name, each in zip(names, scores, strict=False)
    ]


def four_methods(**fields):
    return explained_by_methods(LOO, NEAR, SIZES, NOISE, **fields)


def twelve_methods(text=MOVIE):
    size = len(scored(text).scores)
    signs = np.where(np.arange(12) % 3, 1, -1)[:, None]
    noise = np.random.default_rng(3).normal(size=(12, size))
    return explained_by_methods(*np.where(signs > 0, np.abs(noise), noise), text=text)
