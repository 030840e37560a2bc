"""Results: runs, slowdown, comparisons, and their tables."""
