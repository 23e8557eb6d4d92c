"""The claims of a token that name a user and the groups, with the rules and defaults of the API server.

One claim names the user, and no other stands in for it: two users of an issuer may have the same text in two claims.
"""

from __future__ import annotations

from typing import Final

from pyverno.errors import UsageError
from pyverno.kube.json import JSON, JSONObject
from pyverno.ui.access.identity import AccessDeniedError, Identity
from pyverno.value import dataclass

__all__ = ["UserClaims"]

_EMAIL: Final = "email"
_NO_PREFIX: Final = "-"
_RESERVED: Final = "system:"
_MOST_GROUPS: Final = 1000
_MOST_CHARACTERS: Final = 1024


@dataclass(frozen=True, slots=True)
class UserClaims:
    """Names and prefixes of the flags; `-` as prefix of users is none, as in `--oidc-username-prefix` of Kubernetes.

    Without a prefix names of users get the issuer and `#`, but e-mail addresses none. Raises UsageError for a prefix
    that Kubernetes reserves.

    >>> UserClaims().identity({"sub": "1"}, "https://login.example.org").user
    'https://login.example.org#1'
    """

    user: str = "sub"
    user_prefix: str = ""
    groups: str = ""
    groups_prefix: str = ""

    def __post_init__(self) -> None:
        for flag, prefix in (("username", self.user_prefix), ("groups", self.groups_prefix)):
            if prefix.startswith(_RESERVED):
                raise UsageError(f"--oidc-{flag}-prefix is `{prefix}`: Kubernetes reserves names that begin with it")

    def identity(self, claims: JSONObject, issuer: str) -> Identity:
        """Return the user of a token; raises AccessDeniedError with names of claims, never a value."""
        user = claims.get(self.user)
        if not isinstance(user, str) or not user:  # guard: one claim names the user
            found = ", ".join(sorted(claims))
            raise AccessDeniedError(
                f"no claim `{self.user}` with a text in the token: give --oidc-username-claim one of {found}"
            )
        if len(user) > _MOST_CHARACTERS:
            raise AccessDeniedError(f"the claim `{self.user}` has more than {_MOST_CHARACTERS} characters")
        if self.user == _EMAIL and claims.get("email_verified") is not True:  # guard: an e-mail address is verified
            raise AccessDeniedError("the e-mail address is not verified by the issuer: `email_verified` must be true")
        return Identity(f"{self._prefix(issuer)}{user}", self._groups(claims.get(self.groups) if self.groups else None))

    def _prefix(self, issuer: str) -> str:
        if self.user_prefix == _NO_PREFIX:
            return ""
        return self.user_prefix or ("" if self.user == _EMAIL else f"{issuer}#")  # guard: users of issuers differ

    def _groups(self, found: JSON) -> tuple[str, ...]:
        if found is None:
            return ()
        listed = found if isinstance(found, list) else [found]
        if not all(isinstance(each, str) for each in listed) or len(listed) > _MOST_GROUPS:  # guard: groups are texts
            raise AccessDeniedError(f"the claim `{self.groups}` must be a text, or at most {_MOST_GROUPS} texts")
        return tuple(f"{self.groups_prefix}{each}" for each in listed if each)
