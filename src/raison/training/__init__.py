"""Training: one loop for everything that raison trains, and models that behave on partial contexts."""
