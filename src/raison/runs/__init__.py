"""Corpora: runs that survive anything."""
