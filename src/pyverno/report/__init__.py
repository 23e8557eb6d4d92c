"""Reports: results of rules become PolicyReports, tables and files that people and machines read.

Pure functions from results to text or objects.
"""
