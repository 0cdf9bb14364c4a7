"""Explanations from and for other tools: ERASER's JSONL, Inseq's JSON, tokens and scores, Parquet."""
