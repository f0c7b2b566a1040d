"""Charts: one kind a file, each a function from findings to a specification, its words and its numbers."""
