"""How this process reaches each provider: keys, sign-in, address, CA, as they are now."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from towline.paths import find_paths
from towline.providers.settings import ProviderSettings, Setting
from towline.secrets import (
    Kept,
    SecretsUnavailable,
    login_credential,
    stored_kept,
)
from towline_agent import CA_SETTING, VENDORS, Credential

__all__ = ["Reach", "open_reach"]

_log: Final = logging.getLogger("towline")


class Reach:
    """What is known of the providers, replaced after each change. Does no I/O.

    The environment goes before what is kept. Its `repr` shows nothing of it.

    Args:
        environ: The environment.
        kept: Keys and sign-ins that are kept, by provider.
        settings: Addresses and CA files that were set, by provider.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        kept: Mapping[str, Kept] | None = None,
        settings: Mapping[str, Setting] | None = None,
    ) -> None:
        self.own_environ = environ
        """The environment as it is."""
        self._kept = dict(kept or {})
        self._settings = dict(settings or {})
        self._versions: dict[str, int] = {}

    @property
    def stored(self) -> dict[str, tuple[str, ...]]:
        """The keys that are kept and can be read, by provider; empty for a sign-in alone."""
        return {name: one.keys for name, one in self._kept.items() if one.keys or one.login}

    @property
    def environ(self) -> dict[str, str]:
        """The environment, with the addresses that were set where it names none."""
        environ = dict(self.own_environ)
        for provider, setting in self._settings.items():
            name = VENDORS[provider].url_setting if provider in VENDORS else None
            if name is not None and setting.base_url and not environ.get(name, "").strip():
                environ[name] = setting.base_url
        return environ

    def environ_of(self, provider: str) -> dict[str, str]:
        """The same with the CA file of one provider."""
        environ = self.environ
        ca_file = self.setting(provider).ca_file
        if ca_file:
            environ[CA_SETTING] = ca_file
        return environ

    def kept(self, provider: str) -> Kept:
        """What is kept for a provider."""
        return self._kept.get(provider, Kept())

    def setting(self, provider: str) -> Setting:
        """What was set for a provider."""
        return self._settings.get(provider, Setting())

    def credential(self, provider: str) -> Credential | None:
        """The sign-in for a provider, ready for requests; `None` when there is none."""
        login = self.kept(provider).login
        if login is None:
            return None
        return login_credential(provider, login, self.environ_of(provider))

    def version(self, provider: str) -> int:
        """Grows with each change of a provider: what was made of an earlier one is stale."""
        return self._versions.get(provider, 0)

    def take(self, provider: str, kept: Kept, setting: Setting) -> None:
        """Go by this from now on."""
        self._kept[provider] = kept
        self._settings[provider] = setting
        self._versions[provider] = self.version(provider) + 1


def open_reach(environ: Mapping[str, str] = os.environ) -> Reach:
    """What is kept on this machine. Blocks for some seconds at most; see `stored_keys`."""
    try:
        settings = ProviderSettings(_data_dir(environ)).read()
    except SecretsUnavailable as error:
        _log.warning("Addresses that were set are not used: %s", error.message)
        settings = {}
    return Reach(environ, stored_kept(environ), settings)


def _data_dir(environ: Mapping[str, str]) -> Path:
    return find_paths(environ).data_dir
