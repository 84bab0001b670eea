"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell without job control starts background jobs with these ignored, and children inherit that; tests that send
# signals to the programs they start would then wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGQUIT):
    signal.signal(_number, signal.SIG_DFL)
