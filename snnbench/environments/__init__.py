"""Environments: a Python for each contender, with the packages that its adapter pins."""

from enum import StrEnum


class Env(StrEnum):
    """Workers run in environments that snnbench makes, or in the Python that runs snnbench."""

    managed = "managed"
    current = "current"
