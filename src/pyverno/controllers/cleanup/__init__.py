"""The cleanup controller: policies that delete on a schedule, and objects whose time to live is over.

What is due is decided by the clock of the API server. An object is deleted only in the version in which it was
evaluated.
"""
