"""The command line: arguments become a session, and reviews become text and an exit code.

A command is a module or a package, imported when it is called. Commands review resources only through
`offline.session`.
"""
