"""Models that explain themselves: what they attend to, or select, is part of how they decide."""
