"""Charts: one kind per file, each a function from an overview to a specification, its words and its numbers."""
