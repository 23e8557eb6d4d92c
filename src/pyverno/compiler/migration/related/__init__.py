"""Documents beside policies of rules: cleanup policies, exceptions, suites, and the table of their new names."""

from __future__ import annotations
