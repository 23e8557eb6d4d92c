"""What goes with policies of rules: cleanup policies, exceptions, suites, and the table of names that these follow."""

from __future__ import annotations
