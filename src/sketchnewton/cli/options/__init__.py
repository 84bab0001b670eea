"""Options, as argparse takes them."""
