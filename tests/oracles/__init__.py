"""The papers' algorithms, dense and in plain NumPy: one page each, written to be read, not to be fast."""
