"""What the papers claim, recomputed: `skn reproduce` from a source checkout."""
