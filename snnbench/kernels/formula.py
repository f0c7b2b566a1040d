"""Surrogate formulas of surrogate.py as source text for C, CUDA C++ and Triton.

A formula is called with texts in place of numbers and with one of the dialects below in place of NumPy. It returns the
expression. So compiled kernels compute the reference's formula by construction.
"""

from dataclasses import dataclass
from typing import Any

from snnbench.cases.surrogate import FORMULAS


@dataclass(frozen=True, slots=True)
class Text:
    """An expression in the source text of a language; operators build longer expressions."""

    text: str
    dialect: "Dialect"

    def _with(self, operator: str, left: Any, right: Any) -> "Text":
        return Text(f"({self.dialect.write(left)} {operator} {self.dialect.write(right)})", self.dialect)

    def __add__(self, other: Any) -> "Text":
        return self._with("+", self, other)

    def __radd__(self, other: Any) -> "Text":
        return self._with("+", other, self)

    def __sub__(self, other: Any) -> "Text":
        return self._with("-", self, other)

    def __rsub__(self, other: Any) -> "Text":
        return self._with("-", other, self)

    def __mul__(self, other: Any) -> "Text":
        return self._with("*", self, other)

    def __rmul__(self, other: Any) -> "Text":
        return self._with("*", other, self)

    def __truediv__(self, other: Any) -> "Text":
        return self._with("/", self, other)

    def __rtruediv__(self, other: Any) -> "Text":
        return self._with("/", other, self)

    def __neg__(self) -> "Text":
        return Text(f"(-{self.text})", self.dialect)

    def __lt__(self, other: Any) -> "Text":
        return self._with("<", self, other)

    def __gt__(self, other: Any) -> "Text":
        return self._with(">", self, other)

    def __ge__(self, other: Any) -> "Text":
        return self._with(">=", self, other)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The syntax of numbers and functions in a language; stands in for NumPy in a formula."""

    number: str
    absolute: str
    exponential: str
    choice: str

    def write(self, value: Any) -> str:
        """The source text of a text or a number in this language."""
        return value.text if isinstance(value, Text) else self.number.format(repr(float(value)))

    def _text(self, pattern: str, *values: Any) -> Text:
        return Text(pattern.format(*map(self.write, values)), self)

    def abs(self, x: Any) -> Text:
        """|x|."""
        return self._text(self.absolute, x)

    def exp(self, x: Any) -> Text:
        """e^x."""
        return self._text(self.exponential, x)

    def square(self, x: Any) -> Text:
        """x^2; the compiler computes the equal factors once."""
        return self._text("({0} * {0})", x)

    def where(self, condition: Any, then: Any, other: Any) -> Text:
        """`then` where the condition holds, else `other`."""
        return self._text(self.choice, condition, then, other)

    def full_like(self, like: Any, value: Any) -> Text:
        """A constant."""
        return self._text("{0}", value)

    def zeros_like(self, like: Any) -> Text:
        """Zero."""
        return self.full_like(like, 0.0)


C = Dialect(number="((real){0})", absolute="absolute({0})", exponential="exponential({0})", choice="({0} ? {1} : {2})")
"""C and CUDA C++, with a type `real` and the functions `absolute` and `exponential` of it."""
TRITON = Dialect(number="{0}", absolute="tl.abs({0})", exponential="tl.exp({0})", choice="tl.where({0}, {1}, {2})")
"""Triton's Python, with its language module as `tl`."""


def surrogate(name: str, dialect: Dialect) -> str:
    """The named formula over variables called distance, slope and threshold."""
    variables = (Text(word, dialect) for word in ("distance", "slope", "threshold"))
    return dialect.write(FORMULAS[name](*variables, dialect))
