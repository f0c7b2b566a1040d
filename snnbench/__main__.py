"""`python -m snnbench` is `snnbench`: it imports nothing from the folder that it is called in, unless it lies there."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()] and not __file__.startswith(os.getcwd() + os.sep):
    del sys.path[0]  # there may be a numpy.py in a stranger's recording

from snnbench.cli import main

sys.exit(main())
