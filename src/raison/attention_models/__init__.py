"""Classifiers with one attention over their words, which is their explanation (P2, P3)."""
