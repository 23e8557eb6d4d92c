"""X.509 certificates and certificate requests as objects with the field names of Go."""

from __future__ import annotations
