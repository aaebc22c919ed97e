"""Providers that other packages bring along (A4.62).

```toml
[project.entry-points."towline.providers"]
acme = "acme_llm:connect"
```

`connect("acme/MODEL")` then calls `acme_llm.connect("MODEL", env)`, which returns a `Provider`.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from towline_agent.extension import installed_extensions, installed_names
from towline_agent.providers.base import Provider
from towline_protocol import UsageError

__all__ = ["PROVIDER_GROUP", "installed_provider", "installed_providers"]

PROVIDER_GROUP: Final = "towline.providers"
"""The group of entry points; each is called with the model's name and the environment."""


def installed_providers() -> tuple[str, ...]:
    """The names of the providers that installed packages bring along; none is imported for it."""
    return installed_names(PROVIDER_GROUP)


def installed_provider(name: str, model: str, env: Mapping[str, str]) -> Provider | None:
    """The provider that an installed package registers under a name; `None` when none does.

    Args:
        name: The first part of `provider/model`.
        model: The rest of it; may be empty.
        env: Where keys and addresses are looked up.

    Raises:
        UsageError: It is registered but broken, or takes no such model.
    """
    loaded = installed_extensions(PROVIDER_GROUP, only={name})
    if loaded.notices:
        raise UsageError(f"There is no provider {name!r} now: {loaded.notices[0]}")
    if not loaded.found:
        return None
    try:
        made: Any = loaded.found[0].value(model, env)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # another package's code makes it (A4.65)
        raise UsageError(
            f"The provider {name!r} of an installed package failed with {type(error).__name__}; "
            "mend it, or name another one."
        ) from error
    if not hasattr(made, "step") or not hasattr(made, "model"):
        raise UsageError(
            f"The provider {name!r} of an installed package made {type(made).__name__!r}, which is "
            "no Provider; mend it, or name another one."
        )
    return cast("Provider", made)
