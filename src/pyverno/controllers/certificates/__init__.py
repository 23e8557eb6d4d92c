"""The certificates of the webhook server: issued, renewed, served, and checked by an own handshake."""

from __future__ import annotations
