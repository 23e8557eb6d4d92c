"""Worked conversions: tables of rules with what they become, and every ClusterPolicy of the library."""
