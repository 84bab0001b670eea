"""One module per subcommand: its options, its examples and `run`."""
