"""`python -m sketchnewton` is the command `skn`."""

from sketchnewton.cli.main import run

if __name__ == "__main__":
    run()
