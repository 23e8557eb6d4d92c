"""JMESPath, and texts with `{{ variables }}`, as expressions of CEL.

`translate` returns a `Value`: CEL text with the type of its value and the condition under which it is not null. Types
come from the schemas of the objects; what a schema does not show is assumed only where the rule itself shows it, and
the assumption is noted.
"""

from __future__ import annotations

from pyverno.compiler.migration.expressions.names import Names, names_of
from pyverno.compiler.migration.expressions.translate import is_static, translate, translate_query
from pyverno.compiler.migration.expressions.value import Value

__all__ = ["Names", "Value", "is_static", "names_of", "translate", "translate_query"]
