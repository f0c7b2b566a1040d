"""A shard: one of so many parts of a run, for schedulers that start each part somewhere else.

Work is dealt out by case, so that all that is compared with each other runs in one place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from snnbench.adapter.contender import Work
from snnbench.exits import Exit, UserError


class ShardError(UserError):
    """No shard by its form; the message is one line."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th of `count`, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        """As it is written."""
        return f"{self.index}/{self.count}"

    def of(self, works: Sequence[Work]) -> list[Work]:
        """The works whose cases fall to this shard; every work falls to just one."""
        numbers: dict[object, int] = {}
        for work in works:
            numbers.setdefault(work.case, len(numbers))
        return [work for work in works if numbers[work.case] % self.count == self.index - 1]


def parse(text: str) -> Shard:
    """`2/3` is the second of three. Raises ShardError."""
    match = re.fullmatch(r"\s*(\d{1,4})\s*/\s*(\d{1,4})\s*", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ShardError(f"--shard: {text!r} is no shard such as 2/3 (the second of three)")
    return Shard(int(match[1]), int(match[2]))
