"""The command `skn`: one module per subcommand, imported when that subcommand runs."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Sequence

from sketchnewton.cli.commands import command
from sketchnewton.cli.io.console import printable
from sketchnewton.cli.io.errors import CommandError
from sketchnewton.cli.io.standard_streams import replace_closed
from sketchnewton.cli.options.command_line import parse
from sketchnewton.core.hints import NoReturn

__all__ = ["main", "run"]

_DATA, _INTERRUPTED, _BROKEN_PIPE = 1, 130, 141


# Commands whose work is in the compiled kernels. They have no use for the threads of NumPy's linear algebra, and
# starting those would be a good part of the time to a first result.
_WITHOUT_THREADS = ("train", "predict")


def run() -> NoReturn:
    """The command as a process of its own, which ends here."""
    gc.set_threshold(50_000)  # imports make many objects and hardly any garbage: look for it less often
    sys.setswitchinterval(0.0005)  # a thread that parses waits for the GIL only between two batches
    if sys.argv[1:] and sys.argv[1] in _WITHOUT_THREADS:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    replace_closed()
    try:
        code = main()
    except SystemExit:  # after --help and --version
        code = 0
    for number in (signal.SIGINT, signal.SIGTERM):  # all is done: what comes now must not make it a failure
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # `main` has reported what could not be written
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    # All files are closed and all output is written: shutting the interpreter down would only cost time.
    atexit._run_exitfuncs()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: this process's) and return the exit code.

    0 is success, 1 bad data or files, 2 bad usage, 130 and 143 an end by Ctrl-C and SIGTERM. Every failure is
    one line on stderr.
    """
    try:
        try:
            args = parse(sys.argv[1:] if argv is None else argv)
        except SystemExit:  # after --help and --version
            sys.stdout.flush()
            raise
        code = command(args.command).run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does: no message is needed. What is still buffered must not
        # be flushed at exit, where it would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _fail("interrupted", _INTERRUPTED)
    except (CommandError, OSError, ValueError, MemoryError) as error:
        return _fail(_message(error), error.code if isinstance(error, CommandError) else _DATA)
    except ModuleNotFoundError as error:
        if "pip install" not in str(error):
            raise
        return _fail(str(error), _DATA)  # an extra that is not installed
    return code


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"skn: {printable(' '.join(message.splitlines()))}\n")
    return code
