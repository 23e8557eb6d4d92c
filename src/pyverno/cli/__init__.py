"""Charter to be written."""
