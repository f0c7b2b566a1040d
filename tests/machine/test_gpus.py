"""Tests of cards: the usable cards, and other processes on them."""

from types import SimpleNamespace
from typing import Any

import pytest

from snnbench.machine.gpus import Card, UnknownCard, Watch, chosen, require_alike, visible

UUIDS = ["GPU-aaaa1111", "GPU-bbbb2222", "GPU-bbbb3333"]
CARDS = [Card(uuid, index, "H200", 144 << 30) for index, uuid in enumerate(UUIDS)]


class Driver:
    """Three cards; the test sets their present and past processes."""

    class NVMLError(Exception):
        pass

    class NVMLLibraryMismatchError(Exception):
        pass

    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3

    def __init__(self) -> None:
        self.there: list[int] = []
        self.refused: set[int] = set()
        self.old = False
        self.samples: list[tuple[int, int]] = []
        self.silent = False
        self.models = ["H200"] * 3
        self.mode = 0

    def nvmlDeviceGetName(self, handle: int) -> str:
        return self.models[handle]

    def nvmlDeviceGetCount(self) -> int:
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.refused:
            raise Driver.NVMLError
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return SimpleNamespace(total=144 << 30)

    def nvmlDeviceGetComputeMode(self, handle: int) -> int:
        return self.mode

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return UUIDS[handle].encode()

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        if self.silent:
            raise Driver.NVMLError
        if self.old:
            raise Driver.NVMLLibraryMismatchError
        return [SimpleNamespace(pid=pid) for pid in self.there]

    def nvmlDeviceGetProcessUtilization(self, handle: int, since_us: int) -> list[Any]:
        if self.silent:
            raise Driver.NVMLError
        return [SimpleNamespace(pid=pid, timeStamp=at) for pid, at in self.samples if at >= since_us]


@pytest.mark.parametrize(
    ("listed", "numbers"),
    [
        (None, [0, 1, 2]),
        ("2,0", [2, 0]),
        ("1, 7, 0", [1]),
        ("", []),
        ("-1", []),
        ("GPU-aaaa", [0]),
        ("GPU-bbbb", []),
        ("GPU-bbbb3333,0", [2, 0]),
    ],
)
def test_visible_gpus_follow_cuda_visible_devices(listed: str | None, numbers: list[int]) -> None:
    environ = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert visible(environ, Driver()) == [CARDS[number] for number in numbers]


def test_card_in_exclusive_mode_is_known() -> None:
    driver = Driver()
    driver.mode = 3
    assert [card.exclusive for card in visible({}, driver)] == [True] * 3


def test_mig_slices_are_taken_as_listed() -> None:
    assert visible({"CUDA_VISIBLE_DEVICES": "MIG-12,MIG-34"}, Driver()) == [
        Card("MIG-12", None, "MIG"),
        Card("MIG-34", None, "MIG"),
    ]
    assert not Watch(Card("MIG-12", None), Driver()).others()


def test_cards_are_chosen_by_number_or_uuid() -> None:
    assert chosen("2,0", CARDS) == [CARDS[2], CARDS[0]]
    assert chosen("GPU-bbbb2222,0,0", CARDS) == [CARDS[1], CARDS[0]]
    for wrong in ("3", "GPU-bbbb", "GPU-", "", "cpu"):
        with pytest.raises(
            UnknownCard, match=r"--devices: .* is not a card of this machine \(known: 0 \(GPU-aaaa1111\)"
        ):
            chosen(wrong, CARDS)
    with pytest.raises(UnknownCard, match="known: none"):
        chosen("0", [])


def test_name_of_a_card_is_not_its_uuid() -> None:
    assert len({card.name for card in CARDS}) == 3 and all(len(card.name) == 12 for card in CARDS)


def test_other_process_before_or_after_is_noticed() -> None:
    driver = Driver()
    watch = Watch(CARDS[0], driver)
    assert not watch.others()
    driver.there = [99]
    assert watch.others() and Watch(CARDS[0], driver).others()


def test_own_workers_that_wait_on_a_card_are_no_others() -> None:
    driver = Driver()
    driver.there = [98, 99]
    watch = Watch(CARDS[0], driver, waiting=2)
    assert not watch.others()
    driver.there = [97, 98, 99]
    assert watch.others() and Watch(CARDS[0], driver, waiting=2).others()


def test_second_process_meanwhile_is_noticed() -> None:
    """One of the processes is the worker itself."""
    driver = Driver()
    driver.samples = [(50, 1000), (51, 1001)]
    watch = Watch(CARDS[0], driver)
    driver.samples += [(60, 2000), (60, 2001)]
    assert not watch.others(), "earlier samples do not count"
    driver.samples += [(61, 2002)]
    assert watch.others()


def test_gpu_without_process_list_is_not_flagged() -> None:
    driver = Driver()
    driver.silent = True
    assert not Watch(CARDS[0], driver).others()


def test_old_driver_without_process_list_is_not_flagged() -> None:
    driver = Driver()
    driver.old = True
    assert not Watch(CARDS[0], driver).others()


def test_refused_gpu_is_skipped_and_numbers_are_kept() -> None:
    driver = Driver()
    driver.refused, driver.there = {0}, [99]
    assert visible({}, driver) == CARDS[1:]
    assert visible({"CUDA_VISIBLE_DEVICES": "0"}, driver) == [CARDS[1]], "CUDA counts the cards that it can open"
    assert visible({"CUDA_VISIBLE_DEVICES": UUIDS[0]}, driver) == []
    assert Watch(CARDS[1], driver).others() and not Watch(CARDS[0], driver).others()


def test_unlike_gpus_are_not_mixed_and_need_uuids() -> None:
    driver = Driver()
    driver.models = ["H200", "RTX 4090", "H200"]
    cards = visible({}, driver)
    with pytest.raises(UnknownCard, match=r"--devices has to choose some that are: 0 \(H200\), 1 \(RTX 4090\)"):
        require_alike(cards)
    require_alike(chosen("0,2", cards))
    require_alike([])
    with pytest.raises(UnknownCard, match="numbers of unlike cards; give UUIDs"):
        visible({"CUDA_VISIBLE_DEVICES": "0"}, driver)
    assert visible({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, driver) == [cards[0]]
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-aaaa"}, driver) == [cards[0]]
