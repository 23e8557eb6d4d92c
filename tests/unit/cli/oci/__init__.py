"""Tests of `pyverno oci`."""
