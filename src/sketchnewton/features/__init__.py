"""Features: how records become numbered features."""
