"""Environments: a Python for each contender, with what its adapter pins."""
