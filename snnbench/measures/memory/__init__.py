"""The memory of a pass, in cells of its own."""
