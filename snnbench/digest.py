"""Digests: names made of content, for files and records that must change their name with what they hold."""

import hashlib
import json
from typing import Any


def digest(value: Any) -> str:
    """16 hexadecimal digits that stand for the JSON form of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hashed(name: str) -> str:
    """What stands for a name in public: 12 hexadecimal digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]
