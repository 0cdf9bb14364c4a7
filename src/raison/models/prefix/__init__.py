"""Prefixes of kept tokens that are computed once and shared by many questions."""
