"""Charts: one kind per file, each a function from findings to a specification, its words and its numbers."""
