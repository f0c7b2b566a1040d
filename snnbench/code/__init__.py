"""The code of a network in a library: an adapter's own, for one case, without snnbench around it."""

from snnbench.code.no_code import NoCode
from snnbench.code.script import script, weights

__all__ = ["NoCode", "script", "weights"]
