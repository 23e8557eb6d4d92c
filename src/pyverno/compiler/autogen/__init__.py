"""Autogen: copies of Pod rules for the controllers that create Pods, for both policy families."""

from __future__ import annotations
