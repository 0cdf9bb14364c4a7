"""Slow, literal computations of the papers' formulas, written without raison's code."""
