"""Logins of clouds."""
