"""Tests of the folder `deploy`, and of the integrations through which people get pyverno."""
