"""Scripts that build and try what is released."""
