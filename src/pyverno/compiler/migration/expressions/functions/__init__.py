"""JMESPath's functions in CEL: one function for each, in modules by the type of their arguments.

A function takes the translator and its arguments. A null argument is an error in JMESPath; the CEL of a missing value
is an error as well, so arguments are written plainly and the conditions under which that fails are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pyverno.compiler.migration.expressions.functions.arguments import Translation
from pyverno.compiler.migration.expressions.functions.collections import FUNCTIONS as COLLECTIONS
from pyverno.compiler.migration.expressions.functions.numbers import FUNCTIONS as NUMBERS
from pyverno.compiler.migration.expressions.functions.texts import FUNCTIONS as TEXTS
from pyverno.compiler.migration.expressions.functions.times import FUNCTIONS as TIMES

__all__ = ["FUNCTIONS"]

FUNCTIONS: Final[Mapping[str, Translation]] = MappingProxyType({**TEXTS, **COLLECTIONS, **NUMBERS, **TIMES})
"""Every function that has a form in CEL, by its name in JMESPath."""
