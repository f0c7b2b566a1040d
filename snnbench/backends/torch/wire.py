"""The bytes between rank 0 and another rank, over one socket.

Rank 0 sends a command: a byte and a number. The rank answers with DONE, or with FAILED, the length of a text, and the
text: the error's class, a space, and its message. Arrays follow a command or an answer as their bytes.
"""

import socket
from typing import Any

import numpy as np

NEW, DROP, DONE, FAILED = b"N", b"D", b".", b"!"
COMMANDS = {
    "load": b"L",
    "cotangent": b"C",
    "inference": b"I",
    "forward": b"F",
    "backward": b"B",
    "train": b"T",
    "answer": b"A",
    "seconds": b"S",
}
NUMBER_BYTES = 8
"""The bytes of the number that follows each command and each failure."""
LONGEST_TEXT = 2000


def numbered(byte: bytes, number: int = 0) -> bytes:
    """A command and its number."""
    return byte + number.to_bytes(NUMBER_BYTES, "little")


def failure(error: Exception) -> bytes:
    """The answer of a rank that failed."""
    content = f"{type(error).__name__} {str(error).strip() or type(error).__name__}".encode()[:LONGEST_TEXT]
    return numbered(FAILED, len(content)) + content


def sized(array: Any) -> tuple[bytes, memoryview]:
    """The length of a NumPy array's bytes, and the bytes: no copy of an array that is contiguous."""
    return int(array.nbytes).to_bytes(NUMBER_BYTES, "little"), np.ascontiguousarray(array).data.cast("B")


def receive(connection: socket.socket, count: int) -> bytes:
    """The next `count` bytes. Raises EOFError if the other end has gone, BlockingIOError after the socket's timeout."""
    content = b""
    while len(content) < count:
        received = connection.recv(count - len(content))
        if not received:
            raise EOFError
        content += received
    return content


def byte(connection: socket.socket) -> bytes:
    """The next byte. Raises as `receive`."""
    return receive(connection, 1)


def text(connection: socket.socket) -> str:
    """The next text, which follows its length. Raises as `receive`."""
    return receive(connection, number(connection)).decode(errors="replace")


def number(connection: socket.socket) -> int:
    """The next number. Raises as `receive`."""
    return int.from_bytes(receive(connection, NUMBER_BYTES), "little")


def fill(connection: socket.socket, array: Any) -> None:
    """Read the bytes of a contiguous NumPy array. Raises as `receive`."""
    left = memoryview(array).cast("B")
    while left:
        count = connection.recv_into(left)
        if not count:
            raise EOFError
        left = left[count:]
