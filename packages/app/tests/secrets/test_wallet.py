"""Which of two stores keeps what, on fakes of both."""

import os
import threading
from pathlib import Path

import msgspec
import pytest

from towline.secrets import (
    Kept,
    Login,
    SecretStore,
    SecretsUnavailable,
    Wallet,
    edit_keys,
    forget_login,
    keep_key,
    keep_login,
    kept_secrets,
    read_kept,
)
from towline.secrets.testing import MemorySecretStore

LOCKED = "The keyring is locked."
LOGIN = Login(client_id="client", client_secret="client-secret", refresh="1//refresh")


class Stores:
    """Two stores and a wallet over them."""

    def __init__(self, folder: Path) -> None:
        self.keyring = MemorySecretStore("the keyring")
        self.file = MemorySecretStore("the file")
        self.wallet = Wallet(self.keyring, self.file, folder / "secrets.json")


@pytest.fixture(name="stores")
def stores_fixture(tmp_path: Path) -> Stores:
    return Stores(tmp_path)


@pytest.mark.rules("A2.73")
def test_the_memory_twin_keeps_and_forgets() -> None:
    store: SecretStore = MemorySecretStore()
    store.set("a", "1")
    store.set("a", "2")
    assert store.get("a") == "2"
    store.delete("a")
    store.delete("a")
    assert store.get("a") is None


@pytest.mark.rules("A2.74")
def test_the_keyring_is_taken_where_it_answers(stores: Stores) -> None:
    placed = stores.wallet.set("a", "1")
    assert (placed.title, placed.preferred) == ("the keyring", True)
    assert stores.wallet.place() == placed
    assert stores.file.values == {}
    assert stores.wallet.get("a") == "1"
    assert stores.wallet.read().values == {"a": "1"}


@pytest.mark.rules("A2.74")
def test_the_file_is_taken_where_the_keyring_does_not_answer_and_it_says_why(
    stores: Stores,
) -> None:
    stores.keyring.problem = LOCKED
    placed = stores.wallet.set("a", "1")
    assert (placed.title, placed.why, placed.preferred) == ("the file", LOCKED, False)
    assert stores.wallet.place() == placed
    assert stores.wallet.get("a") == "1"


@pytest.mark.rules("A2.74")
def test_what_was_set_last_counts_wherever_it_lies(stores: Stores) -> None:
    stores.wallet.set("a", "old")
    stores.wallet.set("b", "old")
    stores.keyring.problem = LOCKED
    stores.wallet.set("a", "new")
    contents = stores.wallet.read()
    assert (contents.values, contents.unread) == ({"a": "new"}, {"b": LOCKED})
    stores.keyring.problem = None
    assert stores.wallet.read().values == {"a": "new", "b": "old"}
    stores.wallet.set("c", "1")  # this is when the old one goes from the keyring
    assert "old" in stores.keyring.values["wallet"]
    stores.wallet.set("b", "new")
    assert "old" not in stores.keyring.values["wallet"]
    stores.wallet.set("a", "newest")
    assert stores.wallet.read().values == {"a": "newest", "b": "new", "c": "1"}
    assert stores.file.values == {}


@pytest.mark.rules("A2.74")
def test_what_lies_in_a_locked_keyring_is_neither_read_nor_thought_gone(stores: Stores) -> None:
    stores.wallet.set("a", "1")
    stores.keyring.problem = LOCKED
    for call in (
        lambda: stores.wallet.get("a"),
        lambda: stores.wallet.delete("a"),
        lambda: stores.wallet.edit("a", lambda text: text),
    ):
        with pytest.raises(SecretsUnavailable, match=r"locked.*try again"):
            call()
    stores.keyring.problem = None
    assert stores.wallet.get("a") == "1"


def test_no_store_at_all_says_why(stores: Stores) -> None:
    stores.keyring.problem = LOCKED
    stores.file.problem = "The disk is full."
    with pytest.raises(SecretsUnavailable, match="disk is full"):
        stores.wallet.set("a", "1")
    assert stores.wallet.names() == ()


def test_nothing_is_asked_of_a_keyring_that_holds_nothing(stores: Stores) -> None:
    assert stores.wallet.read().values == {}
    assert stores.wallet.get("a") is None
    stores.wallet.delete("a")
    assert stores.keyring.calls == 0


def test_one_look_reads_everything(stores: Stores) -> None:
    for number in range(5):
        stores.wallet.set(f"name-{number}", "1")
    before = stores.keyring.calls
    assert len(stores.wallet.read().values) == 5
    assert stores.keyring.calls == before + 1


def test_a_change_sees_what_others_have_just_changed(tmp_path: Path) -> None:
    stores = Stores(tmp_path)

    def add(number: int) -> None:
        wallet = Wallet(stores.keyring, stores.file, tmp_path / "secrets.json")
        edit_keys(wallet, "openai", lambda keys: (*keys, f"key-{number}"))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(kept_secrets(stores.wallet, "openai").keys) == sorted(
        f"key-{number}" for number in range(12)
    )


@pytest.mark.rules("A2.74")
@pytest.mark.parametrize("damage", ["lost", "lost with its lock", "cut", "empty", "a list"])
@pytest.mark.parametrize("locked", [False, True])
def test_an_index_that_is_lost_is_made_anew_and_no_key_with_it(
    stores: Stores, tmp_path: Path, damage: str, locked: bool
) -> None:
    stores.wallet.set("a", "1")
    stores.keyring.problem = LOCKED
    stores.wallet.set("b", "2")
    index = tmp_path / "secrets.json"
    match damage:
        case "lost":
            index.unlink()
        case "lost with its lock":
            index.unlink()
            (tmp_path / "secrets.json.lock").unlink()
        case _:
            index.write_text({"cut": '{"a', "empty": "", "a list": "[]"}[damage])
    stores.keyring.problem = LOCKED if locked else None
    assert stores.wallet.read().values == ({"b": "2"} if locked else {"a": "1", "b": "2"})
    stores.wallet.set("c", "3")
    if locked:
        with pytest.raises(SecretsUnavailable, match=r"secrets\.json.*locked.*try again"):
            stores.wallet.edit("a", lambda _: "new")
        with pytest.raises(SecretsUnavailable, match=r"secrets\.json.*locked.*try again"):
            stores.wallet.delete("a")
        with pytest.raises(SecretsUnavailable, match="locked"):
            stores.wallet.get("a")
    stores.keyring.problem = None
    stores.wallet.set("d", "4")
    assert stores.wallet.read().values == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert set(stores.wallet.names()) == {"a", "b", "c", "d"}


@pytest.mark.rules("A2.74")
def test_of_what_lies_in_both_the_file_counts_when_the_index_is_lost(
    stores: Stores, tmp_path: Path
) -> None:
    stores.wallet.set("a", "old")
    stores.keyring.problem = LOCKED
    stores.wallet.set("a", "new")
    (tmp_path / "secrets.json").unlink()
    stores.keyring.problem = None
    assert stores.wallet.get("a") == "new"


def test_a_key_in_a_place_that_is_not_known_here_stays_where_it_is(
    stores: Stores, tmp_path: Path
) -> None:
    index = tmp_path / "secrets.json"
    index.write_text('{"a":"vault","b":{"place":7}}')
    stores.wallet.set("c", "3")
    stores.wallet.delete("c")
    assert msgspec.json.decode(index.read_bytes()) == {"a": "vault", "b": {"place": 7}}
    contents = stores.wallet.read()
    assert (contents.values, set(contents.unread)) == ({}, {"a", "b"})
    for call in (
        lambda: stores.wallet.get("a"),
        lambda: stores.wallet.delete("a"),
        lambda: stores.wallet.edit("b", lambda text: text),
    ):
        with pytest.raises(SecretsUnavailable, match="another version"):
            call()
    stores.wallet.set("a", "1")
    assert stores.wallet.get("a") == "1"


def test_a_pipe_in_the_place_of_the_index_keeps_nobody_waiting(
    stores: Stores, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "secrets.json")
    with pytest.raises(SecretsUnavailable, match="no ordinary file"):
        stores.wallet.read()
    with pytest.raises(SecretsUnavailable, match="no ordinary file"):
        stores.wallet.set("a", "1")


def test_a_damaged_store_loses_nothing_of_the_other(stores: Stores) -> None:
    stores.wallet.set("a", "1")
    stores.keyring.values["wallet"] = "sk-secret"
    stores.wallet.set("b", "2")
    contents = stores.wallet.read()
    assert contents.values == {"b": "2"}
    assert "damaged" in contents.unread["a"]
    assert "sk-secret" not in contents.unread["a"]


@pytest.mark.rules("A2.75")
def test_a_provider_has_keys_and_a_sign_in_apart_from_each_other(stores: Stores) -> None:
    keep_key(stores.wallet, "gemini", "key-1")
    edit_keys(stores.wallet, "gemini", lambda keys: (*keys, "key-2"))
    keep_login(stores.wallet, "gemini", LOGIN)
    whole = Kept(keys=("key-1", "key-2"), login=LOGIN)
    assert kept_secrets(stores.wallet, "gemini") == whole
    placed = msgspec.structs.replace(whole, place="keyring")
    assert read_kept(stores.wallet.read()) == {"gemini": placed}
    assert edit_keys(stores.wallet, "gemini", lambda keys: ()) is None
    assert kept_secrets(stores.wallet, "gemini") == Kept(login=LOGIN)
    forget_login(stores.wallet, "gemini")
    assert stores.wallet.names() == ()
    assert (stores.keyring.values, stores.file.values) == ({}, {})


def test_what_another_version_wrote_is_not_taken_for_a_key(stores: Stores) -> None:
    stores.wallet.set("keys:openai", '{"new":"shape"}')
    stores.wallet.set("login:gemini", "[]")
    stores.wallet.set("later:groq", "1")
    kept = read_kept(stores.wallet.read())
    assert (kept["openai"].keys, kept["gemini"].login) == ((), None)
    assert "set it anew" in str(kept["openai"].unread)
    with pytest.raises(SecretsUnavailable, match="set it anew"):
        edit_keys(stores.wallet, "openai", lambda keys: (*keys, "key"))
    keep_key(stores.wallet, "openai", "key")
    assert kept_secrets(stores.wallet, "openai").keys == ("key",)


@pytest.mark.rules("A2.76")
def test_nothing_kept_shows_in_a_repr(stores: Stores) -> None:
    keep_key(stores.wallet, "gemini", "key-1")
    keep_login(stores.wallet, "gemini", LOGIN)
    contents = stores.wallet.read()
    shown = f"{contents!r} {read_kept(contents)!r} {LOGIN!r} {stores.wallet!r}"
    assert not any(word in shown for word in ("key-1", "client-secret", "refresh"))
