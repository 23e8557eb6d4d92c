"""Client of image registries (OCI distribution): manifests, blobs and referrers, with credentials and limits.

Every body is hashed here and compared with the requested digest. This package must never verify a signature,
and never send a credential to a host that it was not configured for.
"""

from __future__ import annotations
