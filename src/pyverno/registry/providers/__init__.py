"""Logins of clouds: credentials for their registries, made from the identity that this process already has.

Each provider is one file. Requests go to the documented endpoints of its cloud and carry its own identity only; no
policy chooses an endpoint. This package must never keep a secret beyond its expiry.
"""

from __future__ import annotations
