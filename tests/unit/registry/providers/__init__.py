"""Tests of cloud logins."""
