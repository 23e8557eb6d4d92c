"""Inputs of command lines without a cluster: files, folders, git, standard input, values files, recorded answers.

This package reads; only the engine judges.
"""
