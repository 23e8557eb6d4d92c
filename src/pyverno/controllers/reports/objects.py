"""The objects that scans evaluate, in memory as compressed bytes: a few hundred bytes for a Pod of nine kilobytes.

Objects of a kind resemble each other, so each kind has a dictionary made of its first objects. Beyond a budget of bytes
only the digest of an object is kept, and its body is read again from the API server when it has to be evaluated.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from pyverno.kube.gvk import GVK, GVR
from pyverno.kube.json import JSONObject

__all__ = ["Bucket", "BucketKey", "Entry", "ObjectStore", "pack_uid", "unpack_uid"]

_DIGEST: Final = 16
_SAMPLES: Final = 3
_DICTIONARY: Final = 32 * 1024
_UID_TEXT: Final = 36
_NAME_ONLY: Final = 2
"""The byte after the digest: 0 and 1 say how the body is compressed, 2 that only the name follows."""

_UNCOUNTED: Final = frozenset({"managedFields", "resourceVersion"})


def pack_uid(uid: str) -> bytes:
    """Return a UUID as 16 bytes, and any other uid unchanged.

    >>> unpack_uid(pack_uid("0c4f9d0a-9d5c-4b5e-8d0e-0d9c6a1f7d11")), unpack_uid(pack_uid("other"))
    ('0c4f9d0a-9d5c-4b5e-8d0e-0d9c6a1f7d11', 'other')
    """
    if len(uid) == _UID_TEXT:
        try:
            packed = UUID(uid)
        except ValueError:
            return uid.encode()
        if str(packed) == uid:
            return packed.bytes
    return uid.encode()


def unpack_uid(packed: bytes) -> str:
    """Return the uid that was packed."""
    # a text of 16 bytes that is no UUID would be mistaken for one; API servers give none
    return str(UUID(bytes=packed)) if len(packed) == _DIGEST else packed.decode()


class BucketKey(NamedTuple):
    """The objects of a resource in one namespace ("" for those of the cluster)."""

    gvr: GVR
    namespace: str


class Entry:
    """One object: digest and compressed body, what it was evaluated with, what came of it, and what is reported of it.

    `context` and `outcome` are None until the first evaluation; `reported` is the digest of the results in its reports.
    """

    __slots__ = ("blob", "context", "outcome", "reported")

    def __init__(self, blob: bytes) -> None:
        """Begin unevaluated."""
        self.blob = blob
        self.context: Any = None
        self.outcome: Any = None
        self.reported = b""

    @property
    def has_body(self) -> bool:
        """Return whether the body is in memory."""
        return self.blob[_DIGEST] != _NAME_ONLY

    @property
    def name(self) -> str:
        """The name of an object whose body is not in memory."""
        return self.blob[_DIGEST + 1 :].decode()


class Bucket:
    """The objects of one resource and namespace, by packed uid."""

    __slots__ = ("entries", "gvk", "key")

    def __init__(self, key: BucketKey, gvk: GVK) -> None:
        """Begin empty."""
        self.key = key
        self.gvk = gvk
        self.entries: dict[bytes, Entry] = {}

    def __len__(self) -> int:
        return len(self.entries)


class _Dictionary:
    """Text that the objects of a kind share; complete after a few samples, and then fixed."""

    __slots__ = ("_packer", "_samples", "_unpacker", "text")

    def __init__(self) -> None:
        self.text = b""
        self._samples = 0
        self._packer: Any = None
        self._unpacker: Any = None

    def pack(self, body: bytes) -> bytes:
        """Return a first byte that names the way, and the body compressed."""
        if self._samples < _SAMPLES:
            self._samples += 1
            self.text = (self.text + body)[-_DICTIONARY:]
            if self._samples == _SAMPLES:
                self._packer = zlib.compressobj(6, wbits=-15, zdict=self.text)
                self._unpacker = zlib.decompressobj(wbits=-15, zdict=self.text)
            return b"\0" + zlib.compress(body, 6)
        # copies of a primed compressor save filling its window for each object
        packer = self._packer.copy()
        packed: bytes = b"\1" + packer.compress(body) + packer.flush()
        return packed

    def unpack(self, packed: bytes) -> bytes:
        """Return the body."""
        if packed[0] == 0:
            return zlib.decompress(packed[1:])
        unpacked: bytes = self._unpacker.copy().decompress(packed[1:])
        return unpacked


class ObjectStore:
    """All stored objects by resource and namespace; one thread changes it, others may read bodies."""

    def __init__(self, max_bytes: int = 0) -> None:
        """Take how many bytes the bodies may have together; 0 for no limit."""
        self._max_bytes = max_bytes
        self._dictionaries: dict[GVR, _Dictionary] = {}
        self._buckets: dict[BucketKey, Bucket] = {}
        self.bytes = 0
        self.count = 0

    def buckets(self) -> Iterator[Bucket]:
        """Yield the buckets in a fixed order."""
        for key in sorted(self._buckets):
            found = self._buckets.get(key)
            if found is not None:
                yield found

    def bucket(self, key: BucketKey) -> Bucket | None:
        """Return a bucket, None when it holds nothing."""
        return self._buckets.get(key)

    def buckets_of(self, gvr: GVR) -> tuple[Bucket, ...]:
        """Return the buckets of a resource."""
        return tuple(bucket for key, bucket in self._buckets.items() if key.gvr == gvr)

    def put(self, gvr: GVR, gvk: GVK, body: JSONObject) -> tuple[bytes, Bucket, Entry] | None:
        """Store an object; return packed uid, bucket and entry, or None when it is stored as it is already."""
        metadata = body["metadata"]
        key = BucketKey(gvr, metadata.get("namespace") or "")
        uid = pack_uid(metadata["uid"])
        kept = {**body, "metadata": {name: value for name, value in metadata.items() if name not in _UNCOUNTED}}
        text = orjson.dumps(kept)
        digest = hashlib.blake2b(text, digest_size=_DIGEST).digest()
        bucket = self._buckets.get(key)
        known = None if bucket is None else bucket.entries.get(uid)
        if known is not None and known.blob[:_DIGEST] == digest:
            return None
        if bucket is None:
            bucket = self._buckets[key] = Bucket(key, gvk)
        if known is not None:
            self.bytes -= len(known.blob) - _DIGEST
        blob = digest + self._pack(gvr, metadata["name"], text)
        self.bytes += len(blob) - _DIGEST
        if known is None:
            known = bucket.entries[uid] = Entry(blob)
            self.count += 1
        else:
            known.blob = blob
            known.context = None
        return uid, bucket, known

    def _pack(self, gvr: GVR, name: str, text: bytes) -> bytes:
        if self._max_bytes and self.bytes >= self._max_bytes:
            return bytes([_NAME_ONLY]) + name.encode()
        dictionary = self._dictionaries.get(gvr)
        if dictionary is None:
            dictionary = self._dictionaries[gvr] = _Dictionary()
        return dictionary.pack(text)

    def body(self, gvr: GVR, entry: Entry) -> JSONObject | None:
        """Return an object, None where only its digest is kept."""
        return self.unpack(gvr, entry.blob)

    def unpack(self, gvr: GVR, blob: bytes) -> JSONObject | None:
        """Return the object of a blob, None where it holds no body; may be called from any thread."""
        if blob[_DIGEST] == _NAME_ONLY:
            return None
        found: JSONObject = orjson.loads(self._dictionaries[gvr].unpack(blob[_DIGEST:]))
        return found

    def remove(self, key: BucketKey, uid: bytes) -> Entry | None:
        """Forget an object; return its entry."""
        bucket = self._buckets.get(key)
        found = None if bucket is None else bucket.entries.pop(uid, None)
        if bucket is None or found is None:
            return None
        self.count -= 1
        self.bytes -= len(found.blob) - _DIGEST
        if not bucket.entries:
            del self._buckets[key]
        return found

    def drop(self, gvr: GVR, note: Callable[[Bucket, bytes, Entry], None]) -> None:
        """Forget all objects of a resource."""
        for bucket in self.buckets_of(gvr):
            for uid in tuple(bucket.entries):
                found = self.remove(bucket.key, uid)
                if found is not None:
                    note(bucket, uid, found)
        self._dictionaries.pop(gvr, None)
