"""Templates: documents whose strings and keys hold `{{ variables }}` and `$(references)`.

A template is compiled once and rendered often. Only text that the policy's author wrote is ever scanned; what a
variable yields is data and stays as it is. This package must never know which variables exist nor where their values
come from.
"""

from __future__ import annotations

from pyverno.lang.template.location import join_path, parse_path, path_expression
from pyverno.lang.template.references import Surroundings, resolve_references
from pyverno.lang.template.syntax import has_variables, is_reference, is_variable, literal_parts, split_variables
from pyverno.lang.template.template import DataMark, Template, Variable, compile_template

__all__ = [
    "DataMark",
    "Surroundings",
    "Template",
    "Variable",
    "compile_template",
    "has_variables",
    "is_reference",
    "is_variable",
    "join_path",
    "literal_parts",
    "parse_path",
    "path_expression",
    "resolve_references",
    "split_variables",
]
