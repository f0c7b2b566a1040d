"""Environments: a Python for each contender, with the packages that its adapter pins."""
