"""Names of objects and of their parts: the allowed forms, and the API server's texts about wrong ones.

A form is a function from a text to the problems with it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final, TypeAlias

__all__ = [
    "Form",
    "address_problems",
    "config_key_problems",
    "dns_label_1035_problems",
    "dns_label_problems",
    "dns_subdomain_problems",
    "env_name_problems",
    "path_segment_problems",
    "port_name_problems",
    "wildcard_subdomain_problems",
]

Form: TypeAlias = Callable[[str], tuple[str, ...]]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = f"{_LABEL}(\\.{_LABEL})*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"


def _form(pattern: str, text: str, limit: int) -> Form:
    compiled = re.compile(pattern)
    too_long = f"must be no more than {limit} characters"

    def problems(name: str) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        if len(name) > limit:
            found = (too_long,)
        if not compiled.fullmatch(name):
            found = (*found, text)
        return found

    return problems


_dns_label_form: Final[Form] = _form(
    _LABEL,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')",
    63,
)
dns_label_1035_problems: Final[Form] = _form(
    _LABEL_1035,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_LABEL_1035}')",
    63,
)
dns_subdomain_problems: Final[Form] = _form(
    _SUBDOMAIN,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')",
    253,
)


def dns_label_problems(name: str) -> tuple[str, ...]:
    """Return what keeps a name from being one label of a DNS name.

    >>> dns_label_problems("a.b")
    ('must not contain dots',)
    """
    problems = _dns_label_form(name)
    if problems and "." in name and not dns_subdomain_problems(name):
        return (*problems[:-1], "must not contain dots")
    return problems


wildcard_subdomain_problems: Final[Form] = _form(
    f"\\*\\.{_SUBDOMAIN}",
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    f"regex used for validation is '\\*\\.{_SUBDOMAIN}')",
    253,
)


def path_segment_problems(name: str) -> tuple[str, ...]:
    """Return what keeps a name from being a part of a path.

    >>> path_segment_problems("a/b")
    ("may not contain '/'",)
    """
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{mark}'" for mark in "/%" if mark in name)


def config_key_problems(key: str) -> tuple[str, ...]:
    """Return the problems of a key of a ConfigMap or Secret.

    >>> config_key_problems("a.b"), len(config_key_problems("a b"))
    ((), 1)
    """
    problems: list[str] = []
    if len(key) > 253:
        problems.append("must be no more than 253 characters")
    if not re.fullmatch(_CONFIG_KEY, key):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
        )
    return (*problems, *_dot_problems(key))


def _dot_problems(value: str) -> tuple[str, ...]:
    if value == ".":
        return ("must not be '.'",)
    if value == "..":
        return ("must not be '..'",)
    return ("must not start with '..'",) if value.startswith("..") else ()


def env_name_problems(name: str) -> tuple[str, ...]:
    """Return the problems of the name of an environment variable.

    >>> env_name_problems("HOME"), len(env_name_problems("A=B"))
    ((), 1)
    """
    if not name:
        return ("environment variable name must be non-empty",)
    if not all(" " <= char <= "~" and char != "=" for char in name):
        return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)
    return ()


def port_name_problems(name: str) -> tuple[str, ...]:
    """Return the problems of the name of a port.

    >>> port_name_problems("http"), port_name_problems("80")
    ((), ('must contain at least one letter (a-z)',))
    """
    problems: list[str] = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def address_problems(text: str) -> tuple[str, ...]:
    """Return the problems of an IP address.

    >>> address_problems("10.0.0.1"), address_problems("x")
    ((), ('must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',))
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    return ()
