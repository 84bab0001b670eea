"""What `skn train` is made of."""
