"""Sinks: where text that somebody else wrote leaves the program, one function for each.

Names, messages and paths are data in all of them: no terminal escape, command of a CI system, link, formula or path.
"""
