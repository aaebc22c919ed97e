"""What a server asks of whoever knows models and keeps their providers' keys.

The server itself keeps no key: it hands on what an admin sends, and shows what it is given.
"""

from typing import Protocol

from towline_protocol import (
    ChangeProvider,
    FinishSignIn,
    LocalModelState,
    ModelList,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    SignInStarted,
    StartSignIn,
)

__all__ = ["Providers", "SignIns"]


class SignIns(Protocol):
    """Sign-ins under way, one a provider at the most.

    All three raise `ProviderNotFound`, and `Rejected` where there is nothing to sign in at.
    """

    async def start(self, provider: str, asked: StartSignIn) -> SignInStarted:
        """Wait for a consent, in place of one that is waited for already.

        Raises:
            UsageError: A client or a project is missing, or holds what none can.
        """
        ...

    async def finish(self, provider: str, back: FinishSignIn) -> ProviderInfo:
        """Keep what a consent gives; returns within 25 s.

        Raises:
            UsageError: What was pasted does not belong to this sign-in.
            ConsentPending: Nobody has consented so far; ask again.
            Rejected: There was no consent, or it gives nothing.
            UpstreamUnavailable: The provider could not be asked.
            TowlineError: It could not be kept.
        """
        ...

    async def cancel(self, provider: str) -> None:
        """Give it up; none at all is fine."""
        ...


class Providers(Protocol):
    """Models and how their providers are reached. No answer, error or log holds a secret.

    What takes time (a keyring, the network, a disk) is bounded, 25 s in all, and blocks no loop.
    Those that name a provider raise `ProviderNotFound`; those that read or change what is kept
    raise a `TowlineError` with `capability_unavailable` when its store cannot be used.
    """

    @property
    def sign_ins(self) -> SignIns:
        """The sign-ins under way."""
        ...

    async def models(self) -> ModelList:
        """The models of every provider that can be asked; one that does not answer is a fault."""
        ...

    async def set_default(self, model: str | None) -> str:
        """Choose the model of sessions that name none, now and after the next start.

        Args:
            model: `provider/model`; `None` to choose by what is there, as if nobody had chosen.

        Returns:
            The model of such a session.

        Raises:
            Rejected: The settings name another one.
            TowlineError: It could not be kept.
        """
        ...

    async def local_model(self) -> LocalModelState:
        """How the built-in model stands; `off` where there is none."""
        ...

    async def providers(self) -> ProviderList:
        """All providers, the usable ones first."""
        ...

    async def change(self, provider: str, change: ChangeProvider) -> ProviderInfo:
        """Keep keys and address; requests made from then on go by them.

        A change that says nothing reads again what is kept.

        Raises:
            UsageError: A key, an address or a file cannot be used.
            Rejected: This provider takes no such setting.
        """
        ...

    async def remove(self, provider: str) -> ProviderInfo:
        """Forget all that is kept for a provider; nothing at all is fine."""
        ...

    async def test(self, provider: str) -> ProviderTest:
        """Ask a provider for its models, with each of its keys."""
        ...
