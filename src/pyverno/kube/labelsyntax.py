"""The syntax of label keys and label values, with Kubernetes' messages."""

from __future__ import annotations

from pyverno.lazyregex import regex

__all__ = ["label_key_problems", "label_value_problems"]

_NAME_FORM = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME = regex(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_PART = regex(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_RULE = f"{_RULE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORM}')"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_NAME_FORM})?')"
)
_DOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_DNS_LABEL}(\\.{_DNS_LABEL})*')"
)


def label_key_problems(key: str) -> tuple[str, ...]:
    """Return the problems of a label key (or any other qualified name), empty for a valid one.

    >>> label_key_problems("example.com/app")
    ()
    """
    parts = key.split("/")
    if len(parts) > 2:
        return (
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    problems: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        problems.extend(f"prefix part {problem}" for problem in _domain_problems(parts[0]))
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode("utf-8", "replace")) > 63:
        problems.append("name part must be no more than 63 characters")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return tuple(problems)


def label_value_problems(value: str) -> tuple[str, ...]:
    """Return the problems of a label value, empty for a valid one.

    >>> label_value_problems("web-1"), len(label_value_problems("-"))
    ((), 1)
    """
    problems: list[str] = []
    if len(value.encode("utf-8", "replace")) > 63:
        problems.append("must be no more than 63 characters")
    if value and not _NAME.fullmatch(value):
        problems.append(_VALUE_RULE)
    return tuple(problems)


def _domain_problems(text: str) -> list[str]:
    if not text:
        return ["must be non-empty"]
    problems: list[str] = []
    if len(text.encode("utf-8", "replace")) > 253:
        problems.append("must be no more than 253 characters")
    if not all(map(_DNS_PART.fullmatch, text.split("."))):
        problems.append(_DOMAIN_RULE)
    return problems
