"""What all tests start from."""

import signal

# A shell that starts the tests in the background has interrupts ignored, and so would be every process that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
