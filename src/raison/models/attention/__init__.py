"""Attention inside a forward pass: the hook, masks, maps, values, switched-off heads."""
