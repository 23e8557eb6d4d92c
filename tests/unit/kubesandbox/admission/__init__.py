"""Tests of kubesandbox.admission."""
