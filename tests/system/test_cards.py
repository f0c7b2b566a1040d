"""Test of the local executor with two GPUs: a worker sees the GPU of its case and no other."""

from tests.bench import Bench, bench
from tests.run.test_executor import CARDS, SEES, anywhere, cells, execute, with_cards

__all__ = ["bench", "with_cards"]


def test_each_worker_sees_only_its_own_gpu(with_cards: Bench) -> None:
    with_cards.add("a", SEES + anywhere())
    records = execute(with_cards, cells())
    assert {record.status for record in records} == {"measured"} and len(records) == 6
    by_card = {record.case.neurons: record.settings["card"] for record in records}
    assert by_card == {16: CARDS[0].name, 20: CARDS[1].name, 24: CARDS[0].name}
    seen = (with_cards.folder / "a.seen").read_text().split()
    assert sorted(seen) == ["GPU-a"] * 4 + ["GPU-b"] * 2
    assert execute(with_cards, cells()) == [], "all is there"
