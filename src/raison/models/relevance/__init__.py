"""Backward passes that carry relevance instead of gradients (LRP, DeepLIFT)."""
