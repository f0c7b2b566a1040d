"""Settings for all tests."""

import atexit
import os
import shutil
import signal
import tempfile

# A shell that starts the tests in the background ignores interrupts; the tests' child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests' own slots: a run of snnbench on the same machine holds the others. Processes of pytest-xdist inherit these.
if "SNNBENCH_SLOTS" not in os.environ:
    os.environ["SNNBENCH_SLOTS"] = tempfile.mkdtemp(prefix="snnbench-test-slots-")
    atexit.register(shutil.rmtree, os.environ["SNNBENCH_SLOTS"], ignore_errors=True)
