"""Table `wildcard`: glob matching."""

from __future__ import annotations

from typing import Any

from pyverno.kube.wildcard import first_match, has_wildcard, separate_wildcards
from pyverno.kube.wildcard import match as _match
from tests.conformance.outcome import Claim, NotRun


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row."""
    match row["function"]:
        case "Match":
            return Claim(row["expect"], _match(row["pattern"], row["text"]))
        case "ContainsWildcard":
            return Claim(row["expect"], has_wildcard(row["text"]))
        case "MatchPatterns":
            found = first_match(row["patterns"] or (), row["texts"] or ())
            pattern, text = found or ("", "")
            return Claim(row["expect"], {"matched_pattern": pattern, "matched_text": text, "ok": found is not None})
        case "SeperateWildcards":
            wildcards, plain = separate_wildcards(row["list"] or ())
            # Go's nil list is an empty one
            wanted = {key: texts or [] for key, texts in row["expect"].items()}
            return Claim(wanted, {"wildcards": wildcards, "plain": plain})
    raise NotRun(f"no counterpart of {row['function']}")
