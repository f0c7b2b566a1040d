"""What all tests start from."""

import os
import signal
import tempfile

# A shell that starts the tests in the background has interrupts ignored, and so would be every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Slots of their own: a run of snnbench on the same machine holds the others. Processes of pytest-xdist inherit these.
os.environ.setdefault("SNNBENCH_SLOTS", tempfile.mkdtemp(prefix="snnbench-test-slots-"))
