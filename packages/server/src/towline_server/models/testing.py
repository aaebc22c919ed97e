"""For tests: providers whose keys are forgotten with the process, and who answer at once.

```python
providers = FakeProviders("acme")
async with open_test_app(provider, root=root, providers=providers) as built:
    ...
assert providers.keys["acme"] == ["sk-…"]
```
"""

from towline_protocol import (
    ChangeProvider,
    FinishSignIn,
    LocalModelState,
    ModelInfo,
    ModelList,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    SignInStarted,
    StartSignIn,
)
from towline_server.errors import ConsentPending, ProviderNotFound

__all__ = ["FakeProviders"]


class FakeProviders:
    """Some providers with one model each, `NAME/one`; see `Providers`, and `SignIns` too.

    Args:
        names: What the providers are called; the first one has the default model.
    """

    def __init__(self, *names: str) -> None:
        self.keys: dict[str, list[str]] = {name: [] for name in names or ("acme",)}
        """The keys that are kept, by provider."""
        self.urls: dict[str, str] = {}
        """Addresses that were set."""
        self.waiting: set[str] = set()
        """Providers at which a sign-in waits."""
        self.signed_in: set[str] = set()
        """Providers at which one has come to its end."""
        self.default: str | None = None
        """The model that was chosen."""
        self.local = LocalModelState(state="off")
        """How the built-in model stands."""
        self.version = 0
        """Grows with each change."""

    @property
    def sign_ins(self) -> "FakeProviders":
        """Itself."""
        return self

    async def models(self) -> ModelList:
        """One model each."""
        models = tuple(
            ModelInfo(model=f"{name}/one", live=True, window=8192, price_input=1.0)
            for name in self.keys
        )
        return ModelList(default=self.default or models[0].model, models=models, faults={})

    async def set_default(self, model: str | None) -> str:
        """Choose it."""
        self.default = model
        return (await self.models()).default

    async def local_model(self) -> LocalModelState:
        """As was said."""
        return self.local

    async def providers(self) -> ProviderList:
        """All of them."""
        return ProviderList(providers=tuple(self._info(name) for name in self.keys))

    async def change(self, provider: str, change: ChangeProvider) -> ProviderInfo:
        """Keep keys and address."""
        kept = self._kept(provider)
        key = change.key or (kept[0] if kept else None)
        backups = kept[1:] if change.backup_keys is None else change.backup_keys
        self.keys[provider] = [*([] if key is None else [key]), *backups]
        if change.base_url is not None:
            self.urls[provider] = change.base_url
        self.version += 1
        return self._info(provider)

    async def remove(self, provider: str) -> ProviderInfo:
        """Forget its keys and its address."""
        self._kept(provider).clear()
        self.urls.pop(provider, None)
        self.signed_in.discard(provider)
        self.version += 1
        return self._info(provider)

    async def test(self, provider: str) -> ProviderTest:
        """It offers its model."""
        self._kept(provider)
        return ProviderTest(provider=provider, models=("one",))

    async def start(self, provider: str, asked: StartSignIn) -> SignInStarted:
        """Wait for a consent."""
        del asked
        self._kept(provider)
        self.waiting.add(provider)
        return SignInStarted(
            url=f"https://{provider}.example/consent", expires_at="2030-01-01T00:00:00.000Z"
        )

    async def finish(self, provider: str, back: FinishSignIn) -> ProviderInfo:
        """Whatever is pasted is the consent."""
        self._kept(provider)
        if provider not in self.waiting or back.address is None:
            raise ConsentPending("Nobody has consented so far; start a sign-in, then try again.")
        self.waiting.remove(provider)
        self.signed_in.add(provider)
        self.version += 1
        return self._info(provider)

    async def cancel(self, provider: str) -> None:
        """Give it up."""
        self._kept(provider)
        self.waiting.discard(provider)

    def _kept(self, provider: str) -> list[str]:
        kept = self.keys.get(provider)
        if kept is None:
            raise ProviderNotFound(f"There is no provider {provider!r}.")
        return kept

    def _info(self, provider: str) -> ProviderInfo:
        shown = [f"…{key[-4:]}" for key in self._kept(provider)]
        signed_in = provider in self.signed_in
        return ProviderInfo(
            provider=provider,
            title=provider.title(),
            state="ready" if shown or signed_in else "missing",
            found="keyring" if shown else "sign_in" if signed_in else None,
            key=shown[0] if shown else None,
            backup_keys=tuple(shown[1:]),
            base_url=self.urls.get(provider, f"https://{provider}.example"),
            own_url=provider in self.urls,
            can_move=True,
            can_sign_in=True,
            signed_in=signed_in,
            signing_in=provider in self.waiting,
        )
