"""`python -m sketchnewton` is the command `skn`."""

from sketchnewton.cli import run

if __name__ == "__main__":
    run()
