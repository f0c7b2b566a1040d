"""The worker: the process that proves and measures one cell, in the environment of a library."""
