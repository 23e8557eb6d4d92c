"""What one rule knows of the images of an object in one review: recorded before by us, or found now.

Only the records of the object as the API server holds it are read: what a request brings along never counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyverno.engine.imageverification.annotations import (
    NO_RECORD,
    ImageRecord,
    ImageStatus,
    RecordedObject,
    RuleRecord,
    read_record,
    sealed,
    with_record,
)
from pyverno.engine.imageverification.pinning import text_at
from pyverno.engine.request import Operation
from pyverno.engine.rule import Run
from pyverno.images import ImageInfo
from pyverno.kube.json import JSON, JSONObject

__all__ = ["RuleRecords"]

_NANOSECONDS: Final = 1_000_000_000
_ORDER: Final = (ImageStatus.FAIL, ImageStatus.PASS, ImageStatus.SKIP)


class RuleRecords:
    """The records of a rule: `content` is a hash of what it demands, `demands` one of what an image's entries render.

    `demands` may raise PyvernoError subclasses, and returns the empty text for entries without variables.
    """

    def __init__(self, run: Run, rule: str, content: str, demands: Callable[[ImageInfo], str]) -> None:
        """Take the run, the rule, and the hashes that a record must have."""
        policy = run.rule.info.policy
        self._run = run
        self._rule = rule
        self._policy = f"{policy.namespace}/{policy.name}"
        self._content = content
        self._demands = demands
        self._keys = run.broker.host.record_keys
        request = run.request
        self._is_update = request.operation is Operation.UPDATE and isinstance(request.old, dict)
        is_stored = self._is_update or request.is_background  # guard: a request brings no record
        body = request.old if self._is_update else run.resource
        self._stored: JSON = body if is_stored else None
        self._object = RecordedObject.of(request.gvk, request.namespace, body, is_stored=is_stored)
        self._before: RuleRecord = NO_RECORD
        if is_stored:
            found = read_record(self._stored, self._object, self._policy, rule, self._keys)
            if found.content == content:  # guard: a record holds for the rule as it was
                self._before = found
        self._found: dict[str, ImageRecord] = {}

    @property
    def memory_key(self) -> tuple[str, str, str]:
        """The key of what this review has found, for the rules after this one."""
        return ("verified images of a rule", self._policy, self._rule)

    def before(self, image: ImageInfo) -> ImageRecord | None:
        """Return what we recorded of an image that is as it was; None for one that must be verified."""
        found = self._before.images.get(image.reference)
        if found is None or found.status is ImageStatus.FAIL:
            return None
        if found.status is ImageStatus.PASS and image.digest not in ("", found.digest):
            return None
        text = text_at(self._stored, image.steps)
        if text is None or text != text_at(self._run.resource, image.steps):
            return None
        return found if found.demands == self._demands(image) else None  # guard: a record holds for the same demands

    def note(self, image: str, found: ImageRecord) -> None:
        """Record an image; of several findings the worst counts."""
        known = self._found.get(image)
        if known is None or _ORDER.index(found.status) < _ORDER.index(known.status):
            self._found[image] = found

    def write(self, resource: JSONObject) -> JSONObject:
        """Return the resource with what this review found, and keep that for the rules after this one.

        A record that says the same keeps its seal, so that an update does not change the object again.
        """
        runtime = self._run.runtime
        runtime.memory[self.memory_key] = {image: found.status for image, found in self._found.items()}
        record = RuleRecord(dict(self._found), self._content)
        before = self._before
        if before.images == record.images and before.seal is not None and before.seal.key == self._keys.current:
            record = before
        elif record.images and self._keys:
            record = record._replace(made=runtime.host.now() // _NANOSECONDS)
            record = sealed(record, self._object, self._policy, self._rule, self._keys)
        return with_record(resource, self._policy, self._rule, record)
