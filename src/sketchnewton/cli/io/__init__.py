"""Files, console and signals."""
