"""Table `images`: image references and where objects name images."""

from __future__ import annotations

from typing import Any

from pyverno.images import compile_extractors, extract_images, parse_image
from pyverno.kube.wildcard import match
from tests.conformance.outcome import Claim, NotRun

_FIELDS = {
    "Registry": "registry",
    "Name": "name",
    "Path": "path",
    "Tag": "tag",
    "Digest": "digest",
    "Reference": "reference",
    "ReferenceWithTag": "referenceWithTag",
}


def claim(row: dict[str, Any]) -> Claim:
    """Judge one row by the fields that it has."""
    if "images" in row and "raw" in row:
        return Claim(_wanted(row["images"]), extract_images(row["raw"], _extractors(row.get("extractionConfig"))))
    if "patterns" in row and "image" in row:
        return Claim(row["want"], any(match(pattern, row["image"]) for pattern in row["patterns"]))
    if "defaultRegistry" in row:
        return Claim(row["want"], parse_image(row["input"], default_registry=row["defaultRegistry"]).reference)
    if "expectedReferenceWithTag" in row:
        info = parse_image(row["input"])
        return Claim(
            [row["expectedReference"], row["expectedReferenceWithTag"]], [info.reference, info.reference_with_tag]
        )
    if "input" in row and "expected" in row:
        return Claim(row["expected"], parse_image(row["input"]).reference_with_tag)
    arguments = row.get("args")
    if isinstance(arguments, list) and len(arguments) == 9:
        info = parse_image(arguments[0], default_registry=arguments[7], mutate_registry=arguments[8])
        return Claim(arguments[1:7], [info.name, info.path, info.registry, info.tag, info.digest, info.reference])
    raise NotRun("no assertion in the row")


def _wanted(images: dict[str, Any]) -> dict[str, Any]:
    return {
        group: {
            name: {
                **{_FIELDS[key]: value for key, value in item["$items"][0].items() if key in _FIELDS},
                "jsonPointer": item["$items"][1],
            }
            for name, item in found.items()
        }
        for group, found in images.items()
    }


def _extractors(config: Any) -> Any:
    if not config:
        return None
    return compile_extractors(
        {
            kind: [{key.lower(): value for key, value in entry.items() if key != "$type"} for entry in entries]
            for kind, entries in config.items()
            if kind != "$type"
        }
    )
