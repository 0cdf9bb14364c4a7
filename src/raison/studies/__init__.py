"""What takes a corpus rather than a text: statistics and comparisons, built on methods, models and data sets."""
