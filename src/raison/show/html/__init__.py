"""Results as HTML files that open without a network."""
