"""The sandbox over HTTPS, as clients see it."""
