"""The outside systems that a company listens to, and what proves their deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct, field

from crewlet.company.secret import Secret
from crewlet.sources.generic_rule import PREFIX, Rule


class Integration(Struct, frozen=True, kw_only=True):
    """What proves that a delivery came from its vendor. `lookup` is a `module:function` that knows
    the conversation of a payload which does not name it, empty where there is none."""

    secret: Secret
    lookup: str = ""


class MattermostIntegration(Struct, frozen=True, kw_only=True):
    """The tokens of outgoing webhooks, separated by commas, and the account that listens at
    the websocket of `url`; at least one of the two is there, and `url` with its token."""

    secret: Secret | None = None
    url: str = ""
    access_token: Secret | None = None


class GenericIntegration(Struct, frozen=True, kw_only=True):
    """A sender of the company's own: what proves a delivery, and the rule that reads it."""

    secret: Secret
    rule: Rule


Connection: TypeAlias = Integration | MattermostIntegration | GenericIntegration


class Integrations(Struct, frozen=True, kw_only=True):
    """The outside systems that the company listens to; None where it does not."""

    github: Integration | None = None
    gitlab: Integration | None = None
    jira: Integration | None = None
    confluence: Integration | None = None
    plane: Integration | None = None
    slack: Integration | None = None
    mattermost: MattermostIntegration | None = None
    generic: Mapping[str, GenericIntegration] = field(default_factory=dict)

    def of(self, vendor: str) -> Connection | None:
        """The vendor's, whatever somebody asks for: a path of the web is asked, too."""
        if vendor.startswith(PREFIX):
            return self.generic.get(vendor.removeprefix(PREFIX))
        if vendor == "generic" or vendor not in self.__struct_fields__:
            return None
        found: Connection | None = getattr(self, vendor)
        return found

    def lookups(self) -> dict[str, str]:
        """The functions that know conversations, as `module:function`, by vendor."""
        known = {vendor: self.of(vendor) for vendor in self.__struct_fields__}
        return {
            vendor: each.lookup
            for vendor, each in known.items()
            if isinstance(each, Integration) and each.lookup
        }

    def secrets(self) -> list[str]:
        """Everybody's secrets, to be kept from those who do the work; of the tokens of several
        hooks each by itself as well, since the file may have put them together."""
        found = [secret.reveal() for secret in self._secrets()]
        if self.mattermost is not None and self.mattermost.secret is not None:
            found += (part.strip() for part in self.mattermost.secret.reveal().split(","))
        return list(dict.fromkeys(filter(None, found)))

    def _secrets(self) -> Iterator[Secret]:
        known = (self.of(vendor) for vendor in self.__struct_fields__)
        for each in (*known, *self.generic.values()):
            if each is not None and each.secret is not None:
                yield each.secret
            if isinstance(each, MattermostIntegration) and each.access_token is not None:
                yield each.access_token
