"""Shards: a shard is one of several parts of a run, for schedulers that run each part on another machine.

Work is dealt out by case, so that contenders of a case are compared on one machine.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from snnbench.adapter.contender import Work
from snnbench.exits import Exit, UserError


class ShardError(UserError):
    """A malformed shard, or one without cases; the message is one line."""

    code = Exit.USAGE


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`-th of `count` shards, counted from 1."""

    index: int
    count: int

    def __str__(self) -> str:
        """The shard as text, such as 2/3."""
        return f"{self.index}/{self.count}"

    def of(self, works: Sequence[Work]) -> list[Work]:
        """The works of this shard; every case, with all its works, belongs to exactly one shard."""
        numbers: dict[object, int] = {}
        for work in works:
            numbers.setdefault(work.case, len(numbers))
        return [work for work in works if numbers[work.case] % self.count == self.index - 1]


def parse(text: str) -> Shard:
    """`2/3` is the second of three. Raises ShardError."""
    match = re.fullmatch(r"\s*(\d{1,4})\s*/\s*(\d{1,4})\s*", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise ShardError(f"--shard: {text!r}: expected a shard such as 2/3 (the second of three)")
    return Shard(int(match[1]), int(match[2]))
