"""Resource types of the server: built-in kinds, CustomResourceDefinitions, conversion between versions."""

from __future__ import annotations
