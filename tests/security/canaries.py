"""Canaries: values that no text may show, and where to look for them.

A canary stands for what was read from a Secret, a ConfigMap, an answer of an API or a request. `canaries()` gives it in
every type that a value may have and in the forms that parsers of texts take for nearly valid; `traces` looks for it in
an error, its causes and its traceback.
"""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator

from pyverno.kube.json import JSON

__all__ = ["CANARY", "NUMBER", "canaries", "shows", "traces"]

CANARY = "Zq7SecretX9w"
"""No part of this of four characters is in any text of the project."""

NUMBER = 8675309.25

_ALMOST = (
    *(
        "{}",
        "{} {}",
        "true{}",
        "1{}",
        "v1.{}",
        ">=1.0.{}",
        "1.2.3-{}!",
        "2021-01-02T15:04:05{}",
        "5{}",
        "1h{}",
        "1Gi{}",
    ),
    *(
        "({}",
        "[{}",
        "{}**",
        "(?P<{}",
        "a{{1001}}{}",
        "\\{}",
        '{{"{}"',
        '{{"a": {}}}',
        '"{}',
        "[1, {}]",
        "{}: [",
        "a: &{} *b",
    ),
    *("!{} x", "- {}\n {}: 1", "http://{}:port", "https://[{}", "://{}", "http://{}.example.com/", "{}/{}:a:b", "@{}"),
    *(
        "nginx@sha256:{}",
        "docker.io/{}!",
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        "%{}",
        "{}\x00",
    ),
    *(
        "||{}",
        "{} || {}",
        "<{} 1.0",
        "\x01{}",
        "{}=",
        "$({})",
        "{{{{ {} }}}}",
        "{{{{ {}( }}}}",
        "*{}?",
        "99999999999{}",
    ),
)


def canaries() -> Iterator[JSON]:
    """Yield values that hold the canary: texts, numbers, lists and objects, as values and as keys."""
    for form in _ALMOST:
        yield form.replace("{{", "{").replace("}}", "}").replace("{}", CANARY)
    yield base64.b64encode(CANARY.encode()).decode() + CANARY
    yield NUMBER
    yield [CANARY, 1, None]
    yield [1, CANARY]
    yield [[CANARY], {CANARY: CANARY}]
    yield {CANARY: CANARY, "a": {"b": CANARY}}
    yield {"items": [{CANARY: 1}, {"x": CANARY}]}


def shows(text: str) -> bool:
    """Return whether a text shows the canary or a part of it, in any letter case."""
    lowered = text.lower()
    parts = (CANARY[start : start + 4].lower() for start in range(len(CANARY) - 3))
    return any(part in lowered for part in parts) or str(NUMBER)[:5] in text


def traces(error: BaseException) -> list[str]:
    """Return the texts of an error that show the canary: message, str, repr, and everything that a traceback prints."""
    texts = [str(error), repr(error), getattr(error, "message", ""), "".join(traceback.format_exception(error))]
    # a traceback quotes lines of source, among them those of tests that hold the canary's name but never its value
    return [text for text in texts if shows(text)]
