"""Tests of a run's shards: every case falls to one of them."""

import pytest

from snnbench.adapter.contender import Work
from snnbench.plan.shard import Shard, ShardError, parse
from tests.fakes import CASE

CASES = [CASE.with_(neurons=neurons) for neurons in (16, 20, 24, 28)]


def test_every_case_falls_to_one_shard() -> None:
    works = [Work(case, name, "default") for name in "ab" for case in CASES]
    parts = [Shard(index, 3).of(works) for index in (1, 2, 3)]
    assert sorted(works.index(work) for part in parts for work in part) == list(range(8))
    assert [{work.case.neurons for work in part} for part in parts] == [{16, 28}, {20}, {24}]
    assert all({work.library for work in part} == {"a", "b"} for part in parts)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/3/5", "1/99999", ""])
def test_malformed_shard_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ShardError, match=r"^--shard: .*: expected a shard such as 2/3"):
        parse(text)
