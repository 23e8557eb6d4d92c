"""The background controller as a process, and what becomes of its work when things break."""
