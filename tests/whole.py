"""Whether tests take every variant, width and example, as SNNBENCH_TEST_WHOLE in .ci/release says, or a few of them."""

import os

WHOLE = bool(os.environ.get("SNNBENCH_TEST_WHOLE"))
