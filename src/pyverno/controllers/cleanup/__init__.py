"""The cleanup controller: policies that delete on a schedule, and objects whose time to live is over.

The API server's clock decides which deletions are due. An object is deleted only in the version in which it was
evaluated.
"""
