"""Models and providers by operation: who may change what, and what is shown of it."""

import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import (
    OPERATIONS,
    ChangeProvider,
    DefaultModel,
    FinishSignIn,
    LocalModelState,
    ModelList,
    Problem,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    SignInStarted,
    StartSignIn,
)
from towline_server.auth.token import hash_token
from towline_server.build import BuiltApp
from towline_server.models.providers import Providers, SignIns
from towline_server.models.testing import FakeProviders
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app

KEY = "sk-very-secret-1234"
ONE = "/api/providers/acme"
ADMIN = [name for name, row in OPERATIONS.items() if row.admin and "/providers" in row.path]


@pytest.fixture
def providers() -> FakeProviders:
    return FakeProviders("acme", "other")


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


@pytest.fixture
async def built(
    tmp_path: Path, providers: FakeProviders, store: SqliteStore
) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(
        ScriptedProvider("well"), root=tmp_path, providers=providers, store=store
    ) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


async def test_the_fake_is_what_the_seam_says(providers: FakeProviders) -> None:
    seam: Providers = providers
    sign_ins: SignIns = seam.sign_ins
    assert sign_ins is providers


async def test_models_are_listed_with_what_is_known_of_them(client: AppClient) -> None:
    listed = (await client.ask("GET", "/api/models")).read(ModelList)
    assert listed.default == "acme/one"
    assert [model.model for model in listed.models] == ["acme/one", "other/one"]
    assert (listed.models[0].window, listed.models[0].price_input) == (8192, 1.0)


@pytest.mark.rules("A2.76")
async def test_a_key_is_set_and_shown_by_its_last_four_characters(
    client: AppClient, providers: FakeProviders
) -> None:
    body = ChangeProvider(key=KEY, backup_keys=("sk-other-5678",))
    reply = await client.ask("PUT", ONE, body)
    assert reply.status == 200
    assert b"secret" not in reply.body
    info = reply.read(ProviderInfo)
    assert (info.key, info.backup_keys, info.state) == ("…1234", ("…5678",), "ready")
    assert providers.keys["acme"] == [KEY, "sk-other-5678"]
    listed = (await client.ask("GET", "/api/providers")).read(ProviderList)
    assert listed.providers[0] == info
    removed = (await client.ask("DELETE", ONE)).read(ProviderInfo)
    assert (removed.key, removed.state, providers.keys["acme"]) == (None, "missing", [])


async def test_a_test_answers_with_what_the_provider_offers(client: AppClient) -> None:
    reply = await client.ask("POST", f"{ONE}/test")
    assert reply.read(ProviderTest) == ProviderTest(provider="acme", models=("one",))


async def test_a_sign_in_is_started_finished_and_cancelled(
    client: AppClient, providers: FakeProviders
) -> None:
    started = await client.ask("POST", f"{ONE}/sign-in", StartSignIn(client_id="mine"))
    assert started.read(SignInStarted).url == "https://acme.example/consent"
    early = await client.ask("POST", f"{ONE}/sign-in/finish", FinishSignIn())
    assert early.read(Problem).code == "conflict"
    assert (await client.ask("POST", f"{ONE}/sign-in/cancel")).status == 204
    assert providers.waiting == set()
    await client.ask("POST", f"{ONE}/sign-in", StartSignIn())
    back = FinishSignIn(address="http://127.0.0.1/?code=1")
    done = (await client.ask("POST", f"{ONE}/sign-in/finish", back)).read(ProviderInfo)
    assert (done.signed_in, done.found) == (True, "sign_in")


@pytest.mark.rules("C2.2", "C2.3")
@pytest.mark.parametrize("name", [name for name in ADMIN if "{provider}" in OPERATIONS[name].path])
async def test_a_provider_that_there_is_not_is_not_found(client: AppClient, name: str) -> None:
    row = OPERATIONS[name]
    body = b"{}" if row.request is not None else None
    reply = await client.ask(row.method, row.path.replace("{provider}", "nobody"), body)
    assert (reply.status, reply.read(Problem).code) == (404, "not_found")


@pytest.mark.rules("C2.5")
@pytest.mark.parametrize("name", ADMIN)
def test_no_key_is_kept_beside_an_idempotency_key(name: str) -> None:
    assert not OPERATIONS[name].idempotent


@pytest.mark.rules("C2.9")
@pytest.mark.parametrize("name", ADMIN)
async def test_who_is_no_admin_neither_sees_nor_changes_a_provider(
    built: BuiltApp, store: SqliteStore, providers: FakeProviders, name: str
) -> None:
    digest = hash_token("twl_of_a_guest")

    def add_guest(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO users (name, admin, created_ms) VALUES ('guest', 0, 0)")
        connection.execute(
            "INSERT INTO tokens (sha256, user, name, created_ms, last_used_ms, id) "
            "VALUES (?, 'guest', 'x', 0, 0, 'tok_guest')",
            (digest,),
        )

    await store.write(add_guest)
    row = OPERATIONS[name]
    guest = AppClient(built, token="twl_of_a_guest")
    body = b'{"key":"sk-guest"}' if row.request is not None else None
    reply = await guest.ask(row.method, row.path.replace("{provider}", "acme"), body)
    assert (reply.status, reply.read(Problem).code) == (403, "forbidden")
    assert (providers.version, providers.waiting) == (0, set())


@pytest.mark.parametrize(
    "body", [ChangeProvider(key=KEY), StartSignIn(client_secret=KEY), FinishSignIn(address=KEY)]
)
def test_no_repr_shows_what_is_secret(body: object) -> None:
    assert KEY not in repr(body)
    assert KEY not in str(body)


async def test_a_body_that_does_not_fit_is_told_without_its_key(
    client: AppClient, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await client.ask("PUT", ONE, b'{"key":["sk-very-secret-1234"]}')
    assert reply.read(Problem).code == "invalid_request"
    assert b"secret" not in reply.body
    assert "secret" not in caplog.text


async def test_the_model_of_new_sessions_is_chosen_for_all_who_use_the_server(
    client: AppClient, providers: FakeProviders
) -> None:
    path = "/api/models/default"
    chosen = await client.ask("PUT", path, DefaultModel(model="other/one"))
    assert chosen.read(DefaultModel).model == providers.default == "other/one"
    assert (await client.ask("GET", "/api/models")).read(ModelList).default == "other/one"
    wrong = await client.ask("PUT", path, DefaultModel(model="nothing"))
    assert (wrong.status, wrong.read(Problem).reason) == (422, "unknown_model")
    assert (await client.ask("PUT", path, DefaultModel())).read(DefaultModel).model == "acme/one"


async def test_anybody_may_see_how_the_built_in_model_stands(
    client: AppClient, providers: FakeProviders
) -> None:
    providers.local = LocalModelState(state="fetching", done_bytes=4, total_bytes=9, source="hub")
    told = (await client.ask("GET", "/api/local-model")).read(LocalModelState)
    assert (told.state, told.done_bytes, told.total_bytes) == ("fetching", 4, 9)
