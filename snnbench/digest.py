"""Digests: names made of content, so that another content has another name."""

import hashlib
import json
from typing import Any


def digest(value: Any) -> str:
    """16 hexadecimal digits that stand for the JSON form of `value`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def hashed(name: str) -> str:
    """12 hexadecimal digits that stand for a name in public."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]
