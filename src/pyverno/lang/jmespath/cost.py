"""The cost of calling a function: a price for reading its arguments, and limits for what cannot be interrupted.

Every function declares its cost where it is registered; the call is charged before the function sees an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyverno.errors import BudgetExceededError
from pyverno.kube.json import JSON, equal
from pyverno.lang.runtime import BYTES_PER_STEP, Budget
from pyverno.value import dataclass

__all__ = ["COPY", "FLAT", "ITEM", "READ", "Cost", "charge_search", "charge_texts", "same"]

ITEM: Final = 32
"""The weight of an item of a list or an entry of an object; a character of a text weighs 1."""

_POINTER: Final = 16
_ENTRY: Final = 32
_LONG_TEXT: Final = 4096
_LARGE_SEARCH: Final = 30_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of one call, by the weight of its arguments: characters of texts, and items of lists and objects.

    `per_step` is the weight that one step buys (0 = the work is the same for every argument), `most` the weight above
    which the call is refused, because nothing interrupts it (0 = no limit). `copies` means that the result is as large
    as the arguments, so that it counts as produced. What is inside of a list or object is for the function to charge.

    >>> budget = Budget(steps=100)
    >>> Cost(per_step=10).charge("upper", ["x" * 95], budget)
    >>> budget.steps
    90
    """

    per_step: int = BYTES_PER_STEP
    most: int = 0
    copies: bool = False

    def charge(self, name: str, arguments: Sequence[JSON], budget: Budget) -> None:
        """Charge a call with these arguments; raises BudgetExceededError when it may not be made."""
        per_step = self.per_step
        if not per_step:
            budget.charge_steps()
            return
        weight = 0
        for argument in arguments:
            if argument.__class__ is str:
                weight += len(argument)
            elif isinstance(argument, list | dict):
                weight += ITEM * len(argument)
        if self.most and weight > self.most:
            raise BudgetExceededError(
                f"JMESPath function '{name}' takes no more than {self.most} bytes", resource="bytes"
            )
        budget.charge_steps(1 + weight // per_step)
        if self.copies:
            budget.produce(sum(map(_copy_size, arguments)))


def _copy_size(argument: JSON) -> int:
    if argument.__class__ is str:
        return len(argument)
    if isinstance(argument, list):
        return _POINTER * len(argument)
    return _ENTRY * len(argument) if isinstance(argument, dict) else 0


READ: Final = Cost()
"""Reads its arguments once, in C."""

COPY: Final = Cost(copies=True)
"""Reads its arguments once, in C, and makes something as large as they are."""

FLAT: Final = Cost(per_step=0)
"""The same work for every argument, however large it is."""


def charge_texts(texts: Sequence[str], budget: Budget) -> None:
    """Charge for reading every text of a list; repeated texts are charged each time."""
    budget.charge_bytes(sum(map(len, texts)))


def charge_search(text: str, part: str, budget: Budget) -> None:
    """Charge for looking for a part: of medium size it may be compared at every place of the text."""
    if len(part) >= 100 and len(text) < _LARGE_SEARCH:
        budget.charge_bytes(len(text) * len(part), per_step=BYTES_PER_STEP * 8)


def same(left: JSON, right: JSON, budget: Budget) -> bool:
    """Compare two values as `kube.json.equal` does, and charge for what is compared.

    >>> same({"a": [1]}, {"a": [1.0]}, Budget()), same(1, True, Budget())
    (True, False)
    """
    if left.__class__ is str or right.__class__ is str:
        return _same_text(left, right, budget)
    if not isinstance(left, list | dict):
        return equal(left, right)
    pending: list[tuple[JSON, JSON]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if isinstance(a, dict):
            if not isinstance(b, dict) or len(a) != len(b):
                return False
            budget.charge_steps(1 + len(a) // 4)
            for key, item in a.items():
                if key not in b:
                    return False
                pending.append((item, b[key]))
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            budget.charge_steps(1 + len(a) // 4)
            pending.extend(zip(a, b, strict=True))
        elif a.__class__ is str:
            if not _same_text(a, b, budget):
                return False
        elif not equal(a, b):
            return False
    return True


def _same_text(left: JSON, right: JSON, budget: Budget) -> bool:
    if left.__class__ is right.__class__ and len(left) == len(right) > _LONG_TEXT:
        budget.charge_bytes(len(left), per_step=_LONG_TEXT)
    return bool(left == right)
