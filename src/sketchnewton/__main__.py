"""`python -m sketchnewton` is the command `skn`."""

import sys

from sketchnewton.cli import main

if __name__ == "__main__":
    sys.exit(main())
