"""Texts that come with something known about them: trees, labels, rationales of people."""
