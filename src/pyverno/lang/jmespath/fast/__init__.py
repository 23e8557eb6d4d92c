"""The fast tier of JMESPath: generated source for the expressions that policies use most."""

from __future__ import annotations
