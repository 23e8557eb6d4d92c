"""The declaration of one metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Metric"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: its name and meaning, and the labels of its series, in the order of their values.

    The name of a counter is without `_total`. A counter that `is_common` is the same in every process of a
    replica, because each of them sees the event. Kyverno does not have a metric that `is_addition`.
    """

    kind: Literal["counter", "gauge", "histogram"]
    name: str
    help: str
    labels: tuple[str, ...] = ()
    is_common: bool = False
    is_addition: bool = False
