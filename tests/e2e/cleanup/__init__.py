"""The cleanup controller as a process, and the fate of objects under faults."""
