"""The parser, and the options that several subcommands share."""
