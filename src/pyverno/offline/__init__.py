"""The world of a command line without a cluster: files, folders, git, standard input, values files, recorded answers.

This package reads; it must never judge. What a file means for a rule is the engine's business.
"""
