"""The functions of Kyverno's JMESPath: one registration each, one module per topic.

A function takes checked JSON values and gives a JSON value. It must never change an argument, and must ask the
runtime before it produces something large or needs something impure. Topics are imported when one of their functions is
asked for, because most expressions call none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from pyverno.lang.jmespath.function import Function

__all__ = ["FUNCTIONS", "TOPICS"]

TOPICS: Final[Mapping[str, str]] = {
    "standard": (
        "abs avg ceil contains ends_with floor join keys length map max max_by merge min min_by not_null reverse sort"
        " sort_by starts_with to_array to_number to_string type values"
    ),
    "strings": (
        "compare equal_fold replace replace_all to_upper to_lower trim trim_prefix split pattern_match label_match"
        " to_boolean path_canonicalize truncate semver_compare"
    ),
    "regex": "regex_match regex_replace_all regex_replace_all_literal",
    "numbers": "add sum subtract multiply divide modulo round",
    "collections": "lookup items object_from_lists",
    "encoding": "base64_decode base64_encode parse_json parse_yaml sha256 sha1 md5",
    "times": (
        "time_since time_now time_now_utc time_to_cron time_add time_parse time_utc time_diff time_before time_after"
        " time_between time_truncate"
    ),
    "randomness": "random",
    "x509": "x509_decode",
    "images": "image_normalize",
    "network": "is_external_url",
}
"""The modules, and the functions that each of them registers."""


class _Functions(Mapping[str, Function]):
    """All functions by name; a topic is imported when the first of its functions is looked up."""

    def __init__(self) -> None:
        self._topics = {name: topic for topic, names in TOPICS.items() for name in names.split()}
        self._loaded: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        if name not in self._loaded:
            topic = import_module(f"{__name__}.{self._topics[name]}")
            self._loaded.update({each.name: each for each in topic.FUNCTIONS})
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


FUNCTIONS: Final[Mapping[str, Function]] = _Functions()
"""Every function by name, JMESPath's own first; Kyverno's `sum` stands in for the standard one."""
