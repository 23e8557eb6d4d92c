"""The runtime of expressions: limits, and the clock, randomness and name look-ups.

Every evaluation gets one `Runtime`. Clock, randomness and name look-ups come through `ExpressionHost`, so that a run
can be recorded and replayed; limits are counted in `Budget`, so that no policy can run or allocate without bound. This
module must never read a clock for its own purposes nor look at a policy.
"""

from __future__ import annotations

import time
from typing import Any, Final, Protocol

from pyverno.errors import BudgetExceededError, HostUnavailableError
from pyverno.value import dataclass, field

__all__ = ["DEFAULT_SETTINGS", "NO_EXPRESSION_HOST", "Budget", "EvaluationSettings", "ExpressionHost", "Runtime"]

MAX_STEPS = 1_000_000
MAX_TEXT_BYTES = 2 * 1024 * 1024
MAX_PRODUCED_BYTES = 64 * 1024 * 1024
MAX_CONTEXT_BYTES = 2 * 1024 * 1024
MAX_ELEMENTS = 100_000
MAX_CALLS = 100
CHECK_EVERY = 256
BYTES_PER_STEP = 256


class ExpressionHost(Protocol):
    """Clock, randomness and name look-ups for expressions."""

    def now(self) -> int:
        """Return the wall clock in nanoseconds since the Unix epoch."""
        ...

    def random_bits(self, bits: int) -> int:
        """Return a random integer of that many bits."""
        ...

    def lookup_host(self, name: str) -> tuple[str, ...]:
        """Return the addresses of a host name; raises HostError when it has none."""
        ...


class _NoExpressionHost:
    def now(self) -> int:
        raise HostUnavailableError("no clock is available here")

    def random_bits(self, bits: int) -> int:
        raise HostUnavailableError("no source of randomness is available here")

    def lookup_host(self, name: str) -> tuple[str, ...]:
        raise HostUnavailableError("name look-ups are not available here")


NO_EXPRESSION_HOST: ExpressionHost = _NoExpressionHost()


@dataclass(slots=True)
class Budget:
    """Counts down what one review may still use; running out raises BudgetExceededError.

    Limits and their defaults: `steps` (JMESPath and template steps, 10^6), `text_bytes` (size of one produced text or
    list, 2 MiB), `produced_bytes` (all texts and lists that a review produces, 64 MiB), `context_bytes` (all context
    entries of a rule together, 2 MiB), `elements` (foreach elements times nesting, 10^5), `calls` (network calls, 100),
    `deadline` (monotonic seconds, None = no limit). `context_used` counts up to `context_bytes`.
    """

    steps: int = MAX_STEPS
    text_bytes: int = MAX_TEXT_BYTES
    produced_bytes: int = MAX_PRODUCED_BYTES
    context_bytes: int = MAX_CONTEXT_BYTES
    elements: int = MAX_ELEMENTS
    calls: int = MAX_CALLS
    deadline: float | None = None
    context_used: int = 0
    _until_check: int = field(default=CHECK_EVERY, repr=False)

    def charge_steps(self, count: int = 1) -> None:
        """Count evaluation steps; now and then also look at the deadline."""
        self.steps -= count
        if self.steps < 0:
            raise BudgetExceededError("the expression steps of this review are used up", resource="steps")
        self._until_check -= count
        if self._until_check < 0:
            self._until_check = CHECK_EVERY
            self.check_deadline()

    def check_deadline(self) -> None:
        """Raise when the deadline has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise BudgetExceededError("the deadline of this review has passed", resource="time")

    def charge_bytes(self, size: int, *, per_step: int = BYTES_PER_STEP) -> None:
        """Charge for reading `size` bytes (or items) before reading them; `per_step` of them cost one step.

        The default suits work that runs in C at about a byte a nanosecond. A loop in Python over characters or items
        costs about one step for each (`per_step=1`).

        >>> budget = Budget(steps=10)
        >>> budget.charge_bytes(2560)
        >>> budget.steps
        0
        """
        self.charge_steps(1 + (size - 1) // per_step if size > 0 else 0)

    def produce(self, size: int, *, weight: int = 1) -> None:
        """Charge for a text or list of that many bytes (or items times their size) before it is made.

        `weight` is how many bytes of memory each of them takes, for values that are larger than their text.

        Raises BudgetExceededError when the one value would be too large, or when all values that this review has
        produced together would be.
        """
        if size > self.text_bytes:
            raise BudgetExceededError(
                f"a produced value of {size} bytes exceeds the limit of {self.text_bytes} bytes", resource="bytes"
            )
        self.produced_bytes -= size * weight
        if self.produced_bytes < 0:
            raise BudgetExceededError("the bytes that this review may produce are used up", resource="bytes")

    def charge_elements(self, count: int = 1) -> None:
        """Count foreach elements."""
        self.elements -= count
        if self.elements < 0:
            raise BudgetExceededError("the foreach elements of this review are used up", resource="elements")

    def charge_context(self, size: int) -> None:
        """Count the bytes of a context entry that was loaded."""
        self.context_used += size
        if self.context_used > self.context_bytes:
            raise BudgetExceededError(
                f"context size limit exceeded: {self.context_used} bytes exceeds limit of {self.context_bytes} bytes",
                resource="context",
            )

    def charge_call(self) -> None:
        """Count one network call."""
        self.calls -= 1
        if self.calls < 0:
            raise BudgetExceededError("the network calls of this review are used up", resource="calls")
        self.check_deadline()


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Settings of an administrator for all policies: the registry of images that name none, and the size of contexts.

    Without `mutates_registry` an image that names no registry has none, though it is parsed with the default one.
    """

    default_registry: str = "docker.io"
    mutates_registry: bool = True
    context_bytes: int = MAX_CONTEXT_BYTES


DEFAULT_SETTINGS: Final = EvaluationSettings()


@dataclass(frozen=True, slots=True)
class Runtime:
    """The argument of every evaluation: `host` (clock, randomness), `budget` (limits), `settings` of all policies.

    `memory` holds answers that must not change within one review, such as the digest of a tag.
    """

    host: ExpressionHost = NO_EXPRESSION_HOST
    budget: Budget = field(default_factory=Budget)
    settings: EvaluationSettings = DEFAULT_SETTINGS
    memory: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
