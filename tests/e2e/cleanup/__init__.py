"""The cleanup controller as a process, and what becomes of objects when things break."""
