"""Table `wildcard`: glob matching."""

from __future__ import annotations

from typing import Any

from pyverno.kube.wildcard import has_wildcard
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
            pairs = ((pattern, text) for pattern in row["patterns"] or () for text in row["texts"] or ())
            found = next((pair for pair in pairs if _match(*pair)), None)
            pattern, text = found or ("", "")
            return Claim(row["expect"], {"matched_pattern": pattern, "matched_text": text, "ok": found is not None})
        case "SeperateWildcards":
            split: dict[str, list[str]] = {"wildcards": [], "plain": []}
            for text in row["list"] or ():
                split["wildcards" if has_wildcard(text) else "plain"].append(text)
            # Go's nil list is an empty one
            wanted = {key: texts or [] for key, texts in row["expect"].items()}
            return Claim(wanted, split)
    raise NotRun(f"no counterpart of {row['function']}")
