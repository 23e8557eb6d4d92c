"""The author's message of a rule, with its variables resolved."""

from __future__ import annotations

from pyverno.engine.rule import Run
from pyverno.kube.json import JSON, encode
from pyverno.lang.template import Template

__all__ = ["as_text", "passed_message", "rendered_message", "validation_error"]


def passed_message(rule: str) -> str:
    """Return the text of a rule that passed.

    >>> passed_message("check")
    "validation rule 'check' passed."
    """
    return f"validation rule '{rule}' passed."


def rendered_message(message: Template, run: Run) -> JSON:
    """Return the message rendered for this run; raises SubstitutionError when a variable cannot be resolved."""
    return message.render(run.scope, run.runtime, delete_request=run.is_delete)


def as_text(value: JSON) -> str:
    """Render a message that is not a string: as JSON, because it has no other text."""
    return value if isinstance(value, str) else encode(value)


def validation_error(message: str, tail: str) -> str:
    """Join the author's message and what was found, as Kyverno words it (the dot is added when it is missing).

    >>> validation_error("use a tag", "rule r failed at path /spec/")
    'validation error: use a tag. rule r failed at path /spec/'
    """
    if not message:
        return f"validation error: {tail}"
    dot = "" if message.endswith(".") else "."
    return f"validation error: {message}{dot} {tail}"
