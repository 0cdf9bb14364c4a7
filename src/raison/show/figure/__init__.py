"""Results as pictures: PNG, SVG or PDF."""
