"""Authentication: client certificates, bearer tokens, impersonation, and the certificates of the server."""

from __future__ import annotations
