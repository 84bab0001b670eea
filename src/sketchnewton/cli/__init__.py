"""The command `skn`."""
