"""Endpoints and EndpointSlices of Services."""

from __future__ import annotations
