"""What a server asks of this program: models, providers and their keys (see `Providers`)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from towline.providers.address import check_ca_file, check_url
from towline.providers.info import USABLE, describe_provider, keys_of
from towline.providers.key_trial import KeyVerdict, try_key, try_login
from towline.providers.listing import ModelLists
from towline.providers.names import find_provider
from towline.providers.reach import Reach
from towline.providers.settings import ProviderSettings, Setting
from towline.providers.sign_in import WaitingSignIns
from towline.secrets import (
    Kept,
    Login,
    Wallet,
    edit_keys,
    forget_login,
    keep_login,
    open_wallet,
    read_kept,
    set_keys,
)
from towline_agent import (
    VENDORS,
    Clock,
    EndpointNotFound,
    ProviderUnavailable,
    SystemClock,
    Transport,
    list_models,
    show_key,
)
from towline_protocol import (
    ChangeProvider,
    Fault,
    KeyTest,
    LocalModelState,
    ModelList,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    UsageError,
)
from towline_server import Rejected, UpstreamUnavailable

__all__ = ["Desk"]

_T = TypeVar("_T")

_KEYRING_S: Final = 8.0
"""Seconds for a keyring to answer an operation; after that the file is taken."""
_LIMIT_S: Final = 25.0
"""Seconds of any operation: less than the 30 s after which a client gives a request up."""
_THREADS: Final = 2  # what blocks is rare; a change never waits behind a look


class Desk:
    """Keeps keys in the wallet and knows the catalog; see `Providers`. Close it at the end.

    Args:
        reach: What the process asks providers with; changes are put into it.
        data_dir: The folder of the settings.
        default_model: Tells the model of new sessions.
        wallet: Opens the wallet; a fresh one for each operation, since a keyring that did not
            answer once may answer now.
        clock: Time.
        transport: Who asks for models; `None` for the process's own.
        limit_s: Seconds of any operation.
        on_ready: Told of a provider that was changed and can be asked now.
        choose: Takes the model of new sessions, `None` for what is there; raises what keeps it
            from that.
        local_model: Tells how the built-in model stands.
    """

    def __init__(
        self,
        reach: Reach,
        data_dir: Path,
        default_model: Callable[[], str],
        *,
        wallet: Callable[[], Wallet] | None = None,
        clock: Clock | None = None,
        transport: Transport | None = None,
        limit_s: float = _LIMIT_S,
        on_ready: Callable[[str], Awaitable[None]] | None = None,
        choose: Callable[[str | None], Awaitable[None]] | None = None,
        local_model: Callable[[], Awaitable[LocalModelState]] | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self._reach = reach
        self._settings = ProviderSettings(data_dir)
        self._open = wallet or partial(open_wallet, reach.own_environ, keyring_limit_s=_KEYRING_S)
        self._transport = transport
        self._limit_s = limit_s
        self._on_ready = on_ready
        self._default = default_model
        self._choose = choose
        self._local_model = local_model
        self._lists = ModelLists(reach, default_model, clock=clock, transport=transport)
        self._sign_ins = WaitingSignIns(reach.environ_of, self._keep_login, clock=clock)
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="towline-keys")
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def sign_ins(self) -> WaitingSignIns:
        """The sign-ins under way."""
        return self._sign_ins

    async def models(self) -> ModelList:
        """The models of every provider that can be asked."""
        return await self._lists.models()

    async def set_default(self, model: str | None) -> str:
        """Choose the model of sessions that name none."""
        if self._choose is None:
            raise Rejected(
                "The model of new sessions is fixed here; name one with each session.",
                reason="fixed_model",
            )
        await self._choose(model)
        return self._default()

    async def local_model(self) -> LocalModelState:
        """How the built-in model stands."""
        if self._local_model is None:
            return LocalModelState(state="off")
        return await self._local_model()

    async def providers(self) -> ProviderList:
        """All providers, the usable ones first."""
        rows = sorted(map(self._info, VENDORS), key=lambda row: USABLE.index(row.state))
        return ProviderList(providers=tuple(rows))

    async def change(self, provider: str, change: ChangeProvider) -> ProviderInfo:
        """Keep keys and address, and go by them from now on."""
        name = find_provider(provider)
        before = self._reach.setting(name)
        setting = before
        if change.base_url is not None:
            url = await check_url(name, change.base_url, self._reach.own_environ)
            setting = msgspec.structs.replace(setting, base_url=url)
        if change.ca_file is not None:
            ca_file = await self._bounded(self._run(check_ca_file, change.ca_file))
            setting = msgspec.structs.replace(setting, ca_file=ca_file)

        def work(wallet: Wallet) -> None:
            if change.key is not None or change.backup_keys is not None:
                set_keys(wallet, name, change.key, change.backup_keys)
            if setting != before:
                self._settings.set(name, setting)

        return await self._changed(name, work)

    async def remove(self, provider: str) -> ProviderInfo:
        """Forget all that is kept for a provider."""
        name = find_provider(provider)
        await self._sign_ins.cancel(name)

        def work(wallet: Wallet) -> None:
            edit_keys(wallet, name, lambda _: ())
            forget_login(wallet, name)
            self._settings.set(name, Setting())

        return await self._changed(name, work)

    async def test(self, provider: str) -> ProviderTest:
        """Ask a provider for its models, with each of its keys."""
        name = find_provider(provider)
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._try(name)
        except TimeoutError:
            late = ProviderUnavailable(
                f"{VENDORS[name].title} did not answer within {self._limit_s:g} s; try again.",
                provider=name,
                reason="no_answer",
            )
            return ProviderTest(provider=name, fault=late.fault())

    async def aclose(self) -> None:
        """End sign-ins under way, and wait for what is being kept."""
        await self._sign_ins.aclose()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._pool.shutdown(wait=False)

    async def _try(self, name: str) -> ProviderTest:
        environ, keys = self._reach.environ_of(name), keys_of(self._reach, name)
        credential = self._reach.credential(name)
        asks = [
            (show_key(key), found, try_key(name, key, environ, transport=self._transport))
            for key, found in keys.items()
        ]
        if credential is not None:
            asks.append(("sign-in", "sign_in", try_login(credential)))
        if not keys:
            asks.append(("", "", self._ask(name)))
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_judged(name, ask)) for _, _, ask in asks]
        verdicts = [task.result() for task in tasks]
        works = any(verdict.good for verdict in verdicts[: len(keys)] or verdicts[-1:])
        return ProviderTest(
            provider=name,
            models=next((verdict.models for verdict in verdicts if verdict.models), ()),
            keys=tuple(
                KeyTest(key=shown, found=found, works=verdict.good, message=verdict.text)
                for (shown, found, _), verdict in zip(asks, verdicts, strict=True)
                if shown
            ),
            fault=None if works else _fault(verdicts),
        )

    async def _ask(self, name: str) -> KeyVerdict:
        """Ask without a key: a server that needs none, or a sign-in."""
        listing = await list_models(
            name,
            self._reach.environ_of(name),
            credential=self._reach.credential(name),
            transport=self._transport,
        )
        text = "" if listing.problem is None else listing.problem.message
        return KeyVerdict(
            good=listing.problem is None, text=text, models=listing.models, problem=listing.problem
        )

    async def _keep_login(self, provider: str, login: Login) -> ProviderInfo:
        def work(wallet: Wallet) -> None:
            keep_login(wallet, provider, login)

        return await self._changed(provider, work)

    async def _changed(self, name: str, work: Callable[[Wallet], None]) -> ProviderInfo:
        """Do what changes what is kept, read it again, and go by it."""
        return await self._bounded(self._change(name, work))

    async def _change(self, name: str, work: Callable[[Wallet], None]) -> ProviderInfo:
        def block() -> tuple[Kept, Setting]:
            wallet = self._open()
            work(wallet)
            kept = read_kept(wallet.read()).get(name, Kept())
            return kept, self._settings.read().get(name, Setting())

        async with self._changing:
            kept, setting = await self._run(block)
            self._reach.take(name, kept, setting)
        self._lists.forget(name)
        info = self._info(name)
        if self._on_ready is not None and info.state == "ready":
            await self._on_ready(name)
        return info

    async def _run(self, work: Callable[..., _T], *arguments: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    async def _bounded(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Wait for it, not for ever; a thread that blocks comes to its own end all the same."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        try:
            async with asyncio.timeout(self._limit_s):
                return await asyncio.shield(task)
        except TimeoutError as error:
            raise UpstreamUnavailable(
                f"Where keys are kept did not answer within {self._limit_s:g} s. Look at the "
                "provider again in a moment: it may have been changed all the same.",
                retry_after_s=self._limit_s,
                reason="slow_store",
            ) from error

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever still waits is told

    def _info(self, name: str) -> ProviderInfo:
        return describe_provider(
            self._reach,
            name,
            signing_in=self._sign_ins.waits(name),
            problem=self._sign_ins.problem(name),
        )


async def _judged(name: str, ask: Coroutine[Any, Any, KeyVerdict]) -> KeyVerdict:
    try:
        return await ask
    except UsageError as error:  # it has no address
        problem = EndpointNotFound(error.message, provider=name, reason="address")
        return KeyVerdict(good=False, text=error.message, problem=problem)


def _fault(verdicts: Sequence[KeyVerdict]) -> Fault | None:
    """What the first one was refused with."""
    problem = next((verdict.problem for verdict in verdicts if verdict.problem), None)
    return None if problem is None else problem.fault()
