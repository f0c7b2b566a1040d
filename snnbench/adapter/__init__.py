"""The names that adapter files import: refusals of a case, and the rule of a neuron that is not the reference."""

from snnbench.adapter.refusal import Incorrect, Unavailable, Unsupported, require
from snnbench.cases.rule import Rule, rule_of

__all__ = ["Incorrect", "Rule", "Unavailable", "Unsupported", "require", "rule_of"]
