"""Tests of messages on the wire: a sent message arrives, and an incomplete one is not taken for a reply."""

import json
from typing import Any

import pytest

from snnbench.cases.outcome import failed
from snnbench.worker.messages import PROTOCOL, BadRequest, Note, Reply, decode_reply, decode_request, split_notes
from tests.fakes import CASE, request
from tests.recordings import EXACT

REPLY = Reply(
    outcome=EXACT,
    checks={"exam-1": {"correct": True, "first_wrong": "", "rate": 0.1}},
    settings={"version": "1.0", "cpus": [0, 1], "é": None},
    phases={"train": {"repetitions_ns": [10**10, 1]}},
    memory={"host": {"retained_bytes": None}},
)


def test_request_round_trip() -> None:
    sent = request("memory", CASE, memory_limit_bytes=1 << 40, cpus=(1, 3), phases=("train",))
    assert decode_request(sent.encode()) == sent
    assert decode_request(request("verify").encode()).memory_limit_bytes is None


def test_reply_round_trip() -> None:
    assert decode_reply(REPLY.encode()) == REPLY


def test_reply_is_one_line() -> None:
    encoded = Reply(failed("crash", "two\nlines")).encode()
    assert encoded.count(b"\n") == 1 and encoded.endswith(b"\n")


def test_truncated_reply_is_rejected() -> None:
    encoded = REPLY.encode()
    assert [cut for cut in range(len(encoded)) if decode_reply(encoded[:cut]) is not None] == []


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b"1\n",
        b"null\n",
        b"what a library prints\n",
        b"\xff\xfe\n",
        b'{"protocol": 1}\n',
        b'{"protocol": 1, "outcome": {}, "surprise": 1}\n',
        REPLY.encode() * 2,
        b"printed before it " + REPLY.encode(),
    ],
)
def test_malformed_reply_is_rejected(data: bytes) -> None:
    assert decode_reply(data) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_reply_refuses_nan_and_infinity(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Reply(EXACT, phases={"train": value}).encode()


def changed(**fields: Any) -> str:
    """A request with these fields changed; fields set to None are left out."""
    whole = json.loads(request("time").encode()) | fields
    return json.dumps({name: value for name, value in whole.items() if value is not None or name not in fields})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "request: Expecting value"),
        ("{", "request: Expecting property name"),
        ("[]", "request: "),
        ("null", "request: "),
        (changed(protocol=PROTOCOL + 1), f"request: protocol {PROTOCOL} expected"),
        (changed(protocol=None), f"request: protocol {PROTOCOL} expected"),
        (changed(case=None), "request: 'case'"),
        (changed(case={"neurons": 1}), r"request: .*missing .* 'batch'"),
        (changed(case=[]), "request: "),
        (changed(surprise=1), "request: .*'surprise'"),
        (changed(variant=None), "request: .*'variant'"),
        (changed(phases=1), "request: "),
    ],
)
def test_malformed_request_is_refused_with_its_reason(text: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        decode_request(text)


def test_notes_before_a_reply_are_taken_apart() -> None:
    notes = [Note("samples cached", done, 20) for done in (1, 20)]
    data = b"".join(note.encode() for note in notes) + REPLY.encode()
    assert split_notes(data) == (notes, REPLY.encode())
    for cut in range(len(data)):
        first, rest = split_notes(data[:cut])
        second, reply = split_notes(rest + data[cut:])
        assert first + second == notes and reply == REPLY.encode()


@pytest.mark.parametrize("line", [b"note \n", b"note {}\n", b'note ["a", 1]\n', b"note [1, [], 3]\n", b"note \xff\n"])
def test_spoilt_note_is_dropped(line: bytes) -> None:
    assert split_notes(line + REPLY.encode()) == ([], REPLY.encode())


def test_reply_alone_has_no_notes() -> None:
    assert split_notes(REPLY.encode()) == ([], REPLY.encode())
