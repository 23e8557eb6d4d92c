"""Access to the pages: logins by OpenID Connect or by a proxy, and the namespaces that a user may read.

Nothing here decides what is shown: a person's namespaces become the scope of every question to the store.
"""

from __future__ import annotations
