"""`python -m snnbench` is `snnbench`."""

import sys

from snnbench.cli import main

sys.exit(main())
