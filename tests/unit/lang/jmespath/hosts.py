"""A small world for expressions under test: a fixed clock, counted randomness, two names."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from pyverno.errors import HostError
from pyverno.kube.json import JSON
from pyverno.lang.jmespath import compile_expression
from pyverno.lang.runtime import Runtime


@dataclass(slots=True)
class FixedHost:
    """Answers from constants; `names` are the addresses of hosts."""

    clock: int = 1_700_000_000_000_000_000
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    generator: Random = field(default_factory=lambda: Random(1))  # noqa: S311  # repeatable, not secret

    def now(self) -> int:
        return self.clock

    def random_bits(self, bits: int) -> int:
        return self.generator.getrandbits(bits)

    def lookup_host(self, name: str) -> tuple[str, ...]:
        if name not in self.names:
            raise HostError(f"lookup {name}: no such host")
        return self.names[name]


def evaluate(expression: str, data: JSON = None, placeholders: tuple[JSON, ...] = ()) -> JSON:
    """Evaluate an expression in a fixed world."""
    return compile_expression(expression).evaluate(data, Runtime(host=FixedHost()), placeholders)
