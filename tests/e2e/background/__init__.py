"""The background controller as a process, and the fate of its work under faults."""
