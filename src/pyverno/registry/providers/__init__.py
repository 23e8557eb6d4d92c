"""Logins of clouds: credentials for their registries, derived from the identity of this process.

Each provider is one file. Requests go to the documented endpoints of its cloud and carry its own identity only; no
policy chooses an endpoint. This package must never keep a secret beyond its expiry.
"""

from __future__ import annotations
