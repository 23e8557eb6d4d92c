"""A certificate authority, transparency logs and a time stamp authority in one process, for tests.

They make signatures, attestations and trust roots in the forms of Sigstore, without any service. Nothing here may be
imported by the product.
"""

from __future__ import annotations
