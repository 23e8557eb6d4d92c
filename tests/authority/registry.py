"""The image registry of the sandbox, which tests fill with signatures and make fail."""

from __future__ import annotations

from kubesandbox.imageregistry import BUNDLE, INDEX, MANIFEST, Fault, Layer, Registry, digest_of

__all__ = ["BUNDLE", "INDEX", "MANIFEST", "Fault", "Layer", "Registry", "digest_of"]
