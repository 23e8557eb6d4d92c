"""Findings as text: one module for each format of the command line, and the table of their names.

The modules must never print; texts of policies and resources never become commands or markup of a format.
"""

from __future__ import annotations
