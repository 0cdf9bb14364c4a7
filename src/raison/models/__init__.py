"""Models: one protocol, one adapter per task, the facts of each family, and how to open them."""
