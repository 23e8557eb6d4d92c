"""A delivery: the notices that go to one target together, and the protocol of targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from pyverno.errors import HostError
from pyverno.ui.notifications.notice import Notice
from pyverno.value import dataclass, field

__all__ = ["Delivery", "DeliveryError", "Target"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Notices for one target; a repeated delivery has the same `id`, and `attempt` counts from 1.

    `at` is the time of its first attempt; `is_digest` means that it stands for a window of time.
    """

    id: str
    notices: Sequence[Notice]
    at: int
    attempt: int = 1
    is_digest: bool = False
    custom: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """One line for a subject or heading."""
        if len(self.notices) == 1:
            return self.notices[0].title
        gone = sum(notice.is_resolved for notice in self.notices)
        parts = [f"{len(self.notices) - gone} new"] if gone < len(self.notices) else []
        return f"policy results: {', '.join([*parts, *([f'{gone} resolved'] if gone else [])])}"


class DeliveryError(HostError):
    """A delivery that failed; `is_final` excludes a retry, `wait` is the delay that the receiver demands."""

    code: ClassVar[str] = "delivery"

    def __init__(self, message: str, *, is_final: bool = False, wait: float = 0.0) -> None:
        super().__init__(message)
        self.is_final = is_final
        self.wait = wait


class Target(Protocol):
    """Sends deliveries. After each failure a new sender is made, with the current secrets."""

    async def send(self, delivery: Delivery) -> None:
        """Send a delivery; raises DeliveryError, whose text holds neither a secret nor the receiver's response."""
