"""The code of a network in a library: an adapter's own, for one case, without snnbench around it."""

from snnbench.code.script import NoCode, script

__all__ = ["NoCode", "script"]
