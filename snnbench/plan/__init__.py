"""The plan: from a config file to the cells of a run."""
