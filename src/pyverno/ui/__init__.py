"""The web server: reports of clusters and files as pages and JSON, and a playground for policies.

It shows decisions of the engine and contents of reports; it never computes a verdict of its own.
"""

from __future__ import annotations
