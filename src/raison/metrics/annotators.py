"""Kappa of annotators' token labels (Cohen, Fleiss): do people agree among themselves beyond chance?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from raison.core.errors import InputError

__all__ = ["cohen_kappa", "fleiss_kappa"]


def cohen_kappa(first: ArrayLike, second: ArrayLike) -> float:
    """Agreement of two annotators beyond chance: κ = (p_o − p_e) / (1 − p_e) (Cohen 1960).

    first, second [t]: the label of each token by each annotator, of any kind. p_o: share of tokens with the same label;
    p_e = Σ_c p₁(c) p₂(c). If both give one and the same label to everything, p_e = 1 and κ is 1: they agree on all
    tokens, and one more token with another label that they agree on would give 1 as well. NaN without tokens.
    """
    a = np.asarray(first)
    b = np.asarray(second)
    if a.shape != b.shape or a.ndim != 1:
        raise InputError(f"Two annotators must label the same tokens, not {a.shape} and {b.shape}.")
    if not len(a):
        return float("nan")

    codes = codes_of_annotated_labels(np.stack([a, b]))  # [2 t]
    a_codes, b_codes = codes
    same = a_codes == b_codes
    observed = float(same.mean())

    classes = codes.max() + 1
    a_shares = np.bincount(a_codes, minlength=classes) / len(a)
    b_shares = np.bincount(b_codes, minlength=classes) / len(a)
    expected = float(a_shares @ b_shares)
    return agreement_beyond_chance(observed, expected)


def fleiss_kappa(labels: ArrayLike) -> float:
    """Agreement of many annotators beyond chance: κ = (P̄ − P̄_e) / (1 − P̄_e) (Fleiss 1971).

    labels [annotator, t]. With n annotators, of whom n_tc give label c to token t: P̄ is the mean over tokens of
    Σ_c n_tc (n_tc − 1) / (n (n − 1)), P̄_e = Σ_c (share of label c among all labels)². For two annotators it is Scott's
    π, not Cohen's κ, since chance is that of the pooled labels. One label everywhere gives 1, as in `cohen_kappa`. NaN
    without tokens.
    """
    table = np.asarray(labels)
    if table.ndim != 2 or len(table) < 2:
        raise InputError(
            "Agreement needs the labels of at least two annotators for the same tokens."
        )
    if not table.shape[1]:
        return float("nan")

    codes = codes_of_annotated_labels(table)  # [n t]
    n = len(codes)
    classes = range(codes.max() + 1)
    counts_by_class = [(codes == label).sum(0) for label in classes]
    counts = np.stack(counts_by_class)  # [c t]
    pairs = n * (n - 1)
    agreeing_pairs = (counts * (counts - 1)).sum(0)  # [t]
    observed = float(agreeing_pairs.mean() / pairs)
    shares = counts.sum(1) / codes.size
    expected = float((shares**2).sum())
    return agreement_beyond_chance(observed, expected)


def codes_of_annotated_labels(labels: np.ndarray) -> np.ndarray:
    """The same labels as numbers from 0 on."""
    _, codes = np.unique(labels, return_inverse=True)
    return codes.reshape(labels.shape)


def agreement_beyond_chance(observed: float, expected: float) -> float:
    """κ = (observed − expected) / (1 − expected), and 1 where both are 1."""
    if observed == 1:  # also where chance is 1 and the fraction is 0 / 0
        return 1.0
    return (observed - expected) / (1 - expected)
