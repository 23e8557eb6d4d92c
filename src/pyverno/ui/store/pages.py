"""Pages of results: their orders, and the cursors that continue them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from pyverno.errors import UsageError
from pyverno.ui.store.database import Condition
from pyverno.ui.store.rows import StoredResult
from pyverno.value import dataclass

__all__ = ["ORDERS", "Page", "after_cursor", "encode_cursor", "order_clause"]

ORDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "worst": ("s.rank", "s.policy", "s.rule", "s.namespace", "s.kind", "s.id", "r.object", "r.id"),
    "latest": ("-r.changed", "-r.id"),
    "oldest": ("r.first_seen", "r.id"),
}
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Page:
    """One page: rows, the total (`is_lower_bound` where counting stopped), and the cursor of the next page."""

    items: Sequence[StoredResult]
    total: int
    is_lower_bound: bool
    cursor: str = ""


def order_clause(columns: Sequence[str]) -> str:
    """Return the columns of an order as ORDER BY takes them."""
    return ", ".join(f"{each[1:]} DESC" if each.startswith("-") else each for each in columns)


def encode_cursor(order: str, keys: Sequence[object]) -> str:
    """Return the cursor of the row with these keys."""
    return base64.urlsafe_b64encode(orjson.dumps([order, *keys])).decode().rstrip("=")


def _is_key(value: object) -> bool:
    """Return whether a value can be compared with a column: a text, or a number that a database can hold."""
    return isinstance(value, str) or (isinstance(value, int) and -_LARGEST <= value <= _LARGEST)


def after_cursor(columns: Sequence[str], cursor: str) -> Condition:
    """Return the condition that a row follows a cursor; raises UsageError for one that does not fit."""
    try:
        order, *keys = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, TypeError) as error:
        raise UsageError("the cursor is not one that this server gave") from error
    if not isinstance(order, str) or ORDERS.get(order) != columns or len(keys) != len(columns):
        raise UsageError("the cursor belongs to another order")
    if not all(_is_key(key) for key in keys):
        raise UsageError("the cursor is not one that this server gave")
    names = ", ".join(each.removeprefix("-") for each in columns)
    sign = "<" if columns[0].startswith("-") else ">"
    return Condition(f"({names}) {sign} ({', '.join('?' * len(keys))})", tuple(keys))
