"""Experiments of the papers: one file for each, found by its name."""
