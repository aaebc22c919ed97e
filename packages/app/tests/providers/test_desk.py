"""What an admin sets by operation: kept in the wallet, checked, shown, and asked with at once."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from towline.models import Choice, Models
from towline.picks import Picks
from towline.providers.desk import Desk
from towline.providers.reach import Reach
from towline.providers.settings import ProviderSettings, Setting
from towline.secrets import Login, SecretsUnavailable, Wallet, keep_login, kept_secrets, read_kept
from towline.secrets.testing import MemorySecretStore
from towline_agent import CA_SETTING, HttpAnswer, HttpCall, TransportFailed
from towline_agent.testing import FakeClock, ScriptedTransport
from towline_protocol import (
    ChangeProvider,
    ModelInfo,
    ProviderInfo,
    UsageError,
    encode,
)
from towline_server import ProviderNotFound, Providers, Rejected, UpstreamUnavailable

KEY, BACKUP = "sk-very-secret-1234", "sk-other-secret-5678"
LOCAL = "local/qwen2.5-coder-1.5b-instruct"


def listed(*names: str) -> bytes:
    """A list of models."""
    rows = [{"id": name, "object": "model"} for name in names]
    return json.dumps({"object": "list", "data": rows}).encode()


class Web(ScriptedTransport):
    """Answers the keys that it knows; all other hosts are not there."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.keys = keys
        self.held: asyncio.Event | None = None

    async def json(self, call: HttpCall) -> HttpAnswer:
        """The models of OpenAI."""
        self.calls.append(call)
        if self.held is not None:
            await self.held.wait()
        if "openai" not in call.url:
            raise TransportFailed("refused")
        if call.headers.get("authorization", "").removeprefix("Bearer ") in self.keys:
            return HttpAnswer(status=200, body=listed("gpt-5", "gpt-5-mini"))
        return HttpAnswer(status=401, body=b'{"error": {"message": "no such key sk-secret"}}')


class Home:
    """A wallet on two memory stores, and a desk over it."""

    def __init__(self, folder: Path, web: Web, **environ: str) -> None:
        self.folder = folder
        self.keyring, self.file = MemorySecretStore("the keyring"), MemorySecretStore("the file")
        self.reach = Reach({"TOWLINE_HOME": str(folder), **environ})
        self.clock = FakeClock(held=True)
        self.web = web
        self.desk = Desk(
            self.reach,
            folder,
            lambda: "openai/gpt-5",
            wallet=self.wallet,
            clock=self.clock,
            transport=web,
        )

    def wallet(self) -> Wallet:
        return Wallet(self.keyring, self.file, self.folder / "secrets.json")

    async def info(self, provider: str) -> ProviderInfo:
        listed = await self.desk.providers()
        return next(row for row in listed.providers if row.provider == provider)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncGenerator[Home]:
    home = Home(tmp_path, Web(KEY, BACKUP))
    yield home
    await home.desk.aclose()


async def test_the_desk_is_what_the_server_asks(home: Home) -> None:
    seam: Providers = home.desk
    assert (await seam.providers()).providers[0].state in ("ready", "keyless")


@pytest.mark.rules("A2.73", "A2.74", "A2.76")
async def test_a_key_goes_into_the_keyring_and_is_shown_by_its_end(home: Home) -> None:
    info = await home.desk.change("openai", ChangeProvider(key=KEY, backup_keys=(BACKUP,)))
    assert (info.state, info.found, info.key) == ("ready", "keyring", "…1234")
    assert info.backup_keys == ("…5678",)
    assert kept_secrets(home.wallet(), "openai").keys == (KEY, BACKUP)
    assert b"secret" not in encode(await home.desk.providers())
    assert not [path for path in home.folder.rglob("*") if b"secret-" in path.read_bytes()]
    home.keyring.problem = "The keyring is locked."
    moved = await home.desk.change("groq", ChangeProvider(key="gsk-another-0000"))
    assert (moved.found, moved.key) == ("file", "…0000")


async def test_a_new_key_leaves_the_backups_and_new_backups_leave_the_key(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY, backup_keys=(BACKUP,)))
    await home.desk.change("openai", ChangeProvider(key="sk-third-secret-9999"))
    assert home.reach.stored["openai"] == ("sk-third-secret-9999", BACKUP)
    await home.desk.change("openai", ChangeProvider(backup_keys=(KEY, BACKUP)))
    assert home.reach.stored["openai"] == ("sk-third-secret-9999", KEY, BACKUP)
    info = await home.desk.change("openai", ChangeProvider(key=KEY, backup_keys=()))
    assert (info.key, info.backup_keys) == ("…1234", ())


async def test_a_kept_backup_can_be_named_as_it_is_shown(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY, backup_keys=(BACKUP,)))
    third = "sk-third-secret-9999"
    await home.desk.change("openai", ChangeProvider(backup_keys=("…5678", third)))
    assert home.reach.stored["openai"] == (KEY, BACKUP, third)
    await home.desk.change("openai", ChangeProvider(backup_keys=("…9999",)))
    assert home.reach.stored["openai"] == (KEY, third)
    with pytest.raises(UsageError, match="…5678"):
        await home.desk.change("openai", ChangeProvider(backup_keys=("…5678",)))


@pytest.mark.parametrize(
    "change",
    [
        ChangeProvider(key="sk-very secret"),
        ChangeProvider(key="  "),
        ChangeProvider(key="sk-" + "x" * 20_000),
        ChangeProvider(key=KEY, backup_keys=("sk-véry",)),
        ChangeProvider(backup_keys=(BACKUP,)),
        ChangeProvider(key=KEY, backup_keys=tuple(f"sk-number-{n:04}" for n in range(16))),
    ],
)
async def test_what_is_no_key_is_not_kept_and_not_repeated(
    home: Home, change: ChangeProvider
) -> None:
    with pytest.raises(UsageError) as caught:
        await home.desk.change("openai", change)
    assert "sk-" not in caught.value.message
    assert home.wallet().names() == ()
    assert home.reach.version("openai") == 0


@pytest.mark.rules("A2.85")
async def test_the_environment_goes_first_and_says_which_variable_it_is(tmp_path: Path) -> None:
    home = Home(tmp_path, Web(), OPENAI_API_KEY="sk-of-the-shell-0001")
    info = await home.desk.change("openai", ChangeProvider(key=KEY))
    assert (info.found, info.setting) == ("environment", "OPENAI_API_KEY")
    assert (info.key, info.backup_keys) == ("…0001", ("…1234",))
    await home.desk.aclose()


async def test_all_that_is_kept_for_a_provider_is_forgotten(home: Home, tmp_path: Path) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY, base_url="https://mine.example"))
    keep_login(home.wallet(), "openai", Login(refresh="1//secret"))
    info = await home.desk.remove("openai")
    assert (info.state, info.key, info.signed_in, info.own_url) == ("missing", None, False, False)
    assert home.wallet().names() == ()
    assert ProviderSettings(tmp_path).read() == {}
    again = await home.desk.remove("openai")
    assert again == info


@pytest.mark.parametrize("named", ["opnai", "", "OPENAI/gpt", "../etc"])
async def test_a_provider_that_there_is_not_is_told(home: Home, named: str) -> None:
    with pytest.raises(ProviderNotFound):
        await home.desk.change(named, ChangeProvider())
    with pytest.raises(ProviderNotFound):
        await home.desk.test(named)
    with pytest.raises(ProviderNotFound):
        await home.desk.remove(named)


# addresses


@pytest.mark.rules("A2.77", "A2.78")
async def test_an_address_is_kept_shown_and_asked_from_then_on(home: Home, tmp_path: Path) -> None:
    models = Models(Choice(model="openai/gpt-5", why=""), reach=home.reach)
    before = await models.connect("openai/gpt-5")
    pasted = "  https://gateway.example/v1/chat/completions "
    info = await home.desk.change("openai", ChangeProvider(base_url=pasted))
    assert (info.base_url, info.own_url, info.state) == (
        "https://gateway.example/v1/chat/completions",
        True,
        "keyless",
    )
    assert before.stale()
    after = await models.connect("openai/gpt-5")
    assert "gateway.example" in repr(after.provider)
    assert not after.stale()
    assert ProviderSettings(tmp_path).read() == {"openai": Setting(base_url=pasted.strip())}
    own = await home.desk.change("openai", ChangeProvider(base_url=""))
    assert (own.base_url, own.own_url) == ("https://api.openai.com/v1", False)
    assert ProviderSettings(tmp_path).read() == {}


@pytest.mark.rules("A2.80")
@pytest.mark.parametrize(
    "url",
    [
        "ftp://files.example",
        "http://gateway.example/v1",
        "http://169.254.169.254/latest",
        "http://10.0.0.1:8080",
        "https://user:sk-very-secret@gateway.example",
        "https://",
        "file:///etc/passwd",
    ],
)
async def test_an_address_that_no_request_may_go_to_is_refused(home: Home, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        await home.desk.change("openai", ChangeProvider(key=KEY, base_url=url))
    assert "sk-very" not in caught.value.message
    assert home.wallet().names() == ()  # nothing of the change is done
    assert home.web.calls == []


@pytest.mark.rules("A2.80")
@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "localhost:9999"])
async def test_plain_http_goes_to_this_machine(home: Home, url: str) -> None:
    info = await home.desk.change("ollama", ChangeProvider(base_url=url))
    assert info.own_url


async def test_an_address_that_is_fixed_cannot_be_moved(home: Home) -> None:
    with pytest.raises(Rejected, match="custom"):
        await home.desk.change("groq", ChangeProvider(base_url="https://gateway.example"))
    assert not (await home.info("groq")).can_move


async def test_an_address_with_a_password_in_the_environment_is_shown_without_it(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path, Web(), OPENAI_BASE_URL="https://me:secret@mine.example/v1?key=secret")
    assert (await home.info("openai")).base_url == "https://mine.example/v1"
    await home.desk.aclose()


@pytest.mark.rules("A2.79")
async def test_a_ca_file_is_looked_at_before_it_is_kept(home: Home, tmp_path: Path) -> None:
    import certifi

    good = Path(certifi.where())
    info = await home.desk.change("openai", ChangeProvider(ca_file=str(good)))
    assert info.ca_file == str(good)
    assert home.reach.environ_of("openai")[CA_SETTING] == str(good)
    assert CA_SETTING not in home.reach.environ_of("groq")
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    for bad in (junk, tmp_path, tmp_path / "missing", "relative.pem", "a\0b"):
        with pytest.raises(UsageError, match="PEM"):
            await home.desk.change("openai", ChangeProvider(ca_file=str(bad)))
    assert (await home.desk.change("openai", ChangeProvider(ca_file=""))).ca_file is None


# what is slow, or fails


async def test_a_change_that_says_nothing_reads_again_what_is_kept(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY))
    other = home.wallet()  # as another program does
    other.set("keys:openai", json.dumps([BACKUP]))
    info = await home.desk.change("openai", ChangeProvider())
    assert info.key == "…5678"
    assert home.reach.version("openai") == 2


async def test_a_store_that_cannot_be_used_is_told(home: Home) -> None:
    home.keyring.problem = "The keyring is locked."
    home.file.problem = "The disk is full."
    with pytest.raises(SecretsUnavailable, match="disk is full"):
        await home.desk.change("openai", ChangeProvider(key=KEY))
    assert (await home.info("openai")).state == "missing"


async def test_a_key_that_cannot_be_read_now_is_told(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY))
    home.keyring.problem = "The keyring is locked."
    info = await home.desk.change("openai", ChangeProvider())
    assert (info.state, info.key) == ("unreadable", None)
    assert "locked" in str(info.problem)


@pytest.mark.rules("A2.87")
async def test_the_first_provider_that_can_be_asked_gives_new_sessions_their_model(
    home: Home,
) -> None:
    models = Models(Choice(model=LOCAL, why="Nothing else is there."), reach=home.reach)
    desk = Desk(
        home.reach,
        home.folder,
        lambda: models.choice.model,
        wallet=home.wallet,
        transport=home.web,
        on_ready=partial(models.take_up, picks=Picks(home.folder), transport=home.web),
    )
    await desk.change("custom", ChangeProvider(key=KEY))  # it has no address yet
    assert models.choice.local
    Picks(home.folder).remember("openai/gpt-5-mini")
    await desk.change("openai", ChangeProvider(key=KEY))
    assert models.choice.model == "openai/gpt-5-mini"
    assert (await desk.models()).default == "openai/gpt-5-mini"
    await desk.change("groq", ChangeProvider(key="gsk-another-0000"))
    assert models.choice.model == "openai/gpt-5-mini"
    await desk.aclose()


class HeldStore(MemorySecretStore):
    """A store that does not answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def get(self, name: str) -> str | None:
        """Wait, then what is kept."""
        assert self.gate.wait(20)
        return super().get(name)


async def test_a_keyring_that_hangs_holds_neither_the_loop_nor_the_request(tmp_path: Path) -> None:
    store, reach = HeldStore(), Reach({})
    desk = Desk(
        reach,
        tmp_path,
        lambda: LOCAL,
        wallet=lambda: Wallet(store, MemorySecretStore(), tmp_path / "secrets.json"),
        limit_s=0.05,
    )
    with pytest.raises(UpstreamUnavailable, match="may have been changed"):
        await desk.change("openai", ChangeProvider(key=KEY))
    store.gate.set()
    await desk.aclose()  # waits for what is being kept
    assert reach.stored == {"openai": (KEY,)}


# tests


@pytest.mark.rules("A2.75", "A2.76")
async def test_each_key_is_tried_and_the_models_are_told(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY, backup_keys=("sk-wrong-9999",)))
    told = await home.desk.test("openai")
    assert told.models == ("gpt-5", "gpt-5-mini")
    assert [(key.key, key.found, key.works) for key in told.keys] == [
        ("…1234", "keyring", True),
        ("…9999", "keyring", False),
    ]
    assert told.fault is None
    assert b"sk-" not in encode(told)


async def test_a_provider_that_refuses_is_a_fault(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key="sk-wrong-9999"))
    told = await home.desk.test("openai")
    assert told.fault is not None
    assert (told.fault.code, told.models) == ("provider_auth", ())
    assert b"sk-wrong" not in encode(told)


async def test_a_provider_without_a_key_or_an_address_is_a_fault(home: Home) -> None:
    missing = (await home.desk.test("openai")).fault
    assert missing is not None
    assert missing.reason == "missing_key"
    nowhere = (await home.desk.test("custom")).fault
    assert nowhere is not None
    assert nowhere.reason == "address"
    silent = (await home.desk.test("ollama")).fault
    assert silent is not None
    assert silent.reason == "refused"


async def test_a_provider_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    web = Web(KEY)
    web.held = asyncio.Event()
    reach = Reach({"OPENAI_API_KEY": KEY})
    desk = Desk(reach, tmp_path, lambda: LOCAL, transport=web, limit_s=0.05)
    fault = (await desk.test("openai")).fault
    assert fault is not None
    assert fault.reason == "no_answer"
    await desk.aclose()


# models


def by_name(models: tuple[ModelInfo, ...]) -> dict[str, ModelInfo]:
    return {model.model: model for model in models}


async def test_models_come_with_prices_and_are_asked_for_once_in_a_while(home: Home) -> None:
    await home.desk.change("openai", ChangeProvider(key=KEY))
    first = await home.desk.models()
    assert first.default == "openai/gpt-5"
    gpt = by_name(first.models)["openai/gpt-5"]
    assert gpt.live
    assert gpt.price_input
    assert gpt.window
    assert (first.models[-1].model, first.models[-1].price_input) == (LOCAL, 0.0)
    assert first.faults == {}
    asked = len(home.web.calls)
    assert await home.desk.models() == first
    home.clock.advance(14)
    await home.desk.models()
    assert len(home.web.calls) == asked
    home.clock.advance(300)
    await home.desk.models()
    assert len(home.web.calls) > asked


async def test_a_provider_that_does_not_say_is_a_fault_and_its_known_models_stand(
    home: Home,
) -> None:
    await home.desk.change("openai", ChangeProvider(key="sk-wrong-9999"))
    told = await home.desk.models()
    assert told.faults["openai"].code == "provider_auth"
    known = by_name(told.models)["openai/gpt-5"]
    assert not known.live
    assert not [name for name in by_name(told.models) if name.startswith("ollama/")]
    await home.desk.change("openai", ChangeProvider(key=KEY))  # is asked anew at once
    assert by_name((await home.desk.models()).models)["openai/gpt-5"].live


async def test_a_damaged_file_of_addresses_is_told_and_not_written_over(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "providers.json").write_bytes(b"{")
    with pytest.raises(SecretsUnavailable, match="damaged"):
        await home.desk.change("openai", ChangeProvider(base_url="https://mine.example"))
    assert (tmp_path / "providers.json").read_bytes() == b"{"
    assert read_kept(home.wallet().read()) == {}
