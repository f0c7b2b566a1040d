"""A fuzz of the command line: drawn arguments for every command, and recordings with something wrong in them."""
