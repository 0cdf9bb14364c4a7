"""Classifiers that select their rationale and predict from that alone (P1)."""
