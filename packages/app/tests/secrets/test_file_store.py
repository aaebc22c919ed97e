"""The encrypted file: private, whole, and never silent about what it cannot read."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from towline.secrets import SecretStore, SecretsUnavailable
from towline.secrets.file_store import FileSecretStore
from towline.secrets.private_file import locked

SECRET = "sk-very-secret-1234"


@pytest.fixture(name="store")
def store_fixture(tmp_path: Path) -> FileSecretStore:
    return FileSecretStore(tmp_path / "data" / "secrets.bin", tmp_path / "config" / "secrets.key")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rules("A2.73", "A2.74")
def test_what_is_kept_is_found_again_by_another_process_and_can_be_forgotten(
    store: SecretStore, tmp_path: Path
) -> None:
    assert store.get("openai") is None
    store.set("openai", SECRET)
    store.set("gemini", "other")
    store.set("gemini", "newer")
    again = FileSecretStore(tmp_path / "data" / "secrets.bin", tmp_path / "config" / "secrets.key")
    assert (again.get("openai"), again.get("gemini")) == (SECRET, "newer")
    again.delete("openai")
    again.delete("openai")
    assert (store.get("openai"), store.get("gemini")) == (None, "newer")


@pytest.mark.rules("A2.74")
def test_the_file_is_encrypted_and_private_and_its_key_lies_apart(
    store: FileSecretStore, tmp_path: Path
) -> None:
    store.set("openai", SECRET)
    sealed, key = tmp_path / "data" / "secrets.bin", tmp_path / "config" / "secrets.key"
    assert (_mode(sealed), _mode(key)) == (0o600, 0o600)
    assert (_mode(sealed.parent), _mode(key.parent)) == (0o700, 0o700)
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"secret" not in everything
    assert b"openai" not in everything
    assert str(sealed) in store.title


@pytest.mark.rules("A2.74")
def test_files_that_others_could_read_are_closed_to_them(
    store: FileSecretStore, tmp_path: Path
) -> None:
    store.set("openai", SECRET)
    sealed, key = tmp_path / "data" / "secrets.bin", tmp_path / "config" / "secrets.key"
    for path in (sealed, key):
        path.chmod(0o644)
    assert store.get("openai") == SECRET
    assert (_mode(sealed), _mode(key)) == (0o600, 0o600)


@pytest.mark.rules("A2.74")
def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    def write(number: int) -> None:
        store = FileSecretStore(tmp_path / "secrets.bin", tmp_path / "config" / "secrets.key")
        store.set(f"name-{number}", f"value-{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    store = FileSecretStore(tmp_path / "secrets.bin", tmp_path / "config" / "secrets.key")
    assert [store.get(f"name-{number}") for number in range(12)] == [
        f"value-{number}" for number in range(12)
    ]


@pytest.mark.rules("A2.74")
def test_a_write_that_fails_leaves_what_was_there(
    store: FileSecretStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.set("openai", SECRET)

    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(SecretsUnavailable, match="No space left"):
            store.set("openai", "other")
    assert store.get("openai") == SECRET
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == [
        "secrets.bin",
        "secrets.bin.lock",
    ]


@pytest.mark.parametrize("damage", ["no key", "other key", "no base64", "cut", "empty"])
def test_what_cannot_be_decrypted_is_said_and_never_written_over(
    store: FileSecretStore, tmp_path: Path, damage: str
) -> None:
    store.set("openai", SECRET)
    sealed, key = tmp_path / "data" / "secrets.bin", tmp_path / "config" / "secrets.key"
    match damage:
        case "no key":
            key.unlink()
        case "other key":
            key.write_text("A" * 43 + "=")
        case "no base64":
            key.write_text("what?")
        case "cut":
            sealed.write_bytes(sealed.read_bytes()[:-9])
        case _:
            sealed.write_bytes(b"")
    before = sealed.read_bytes()
    for call in (lambda: store.get("openai"), lambda: store.set("openai", "new")):
        with pytest.raises(SecretsUnavailable, match="move both of them aside") as caught:
            call()
        assert "secrets.bin" in caught.value.message
        assert caught.value.__cause__ is None
    assert sealed.read_bytes() == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file is in the way")
    store = FileSecretStore(tmp_path / "data" / "secrets.bin", tmp_path / "secrets.key")
    with pytest.raises(SecretsUnavailable, match=r"secrets\.bin"):
        store.get("openai")
    with pytest.raises(SecretsUnavailable, match="make its folder writable"):
        store.set("openai", SECRET)


def test_a_lock_that_another_holds_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock"),
        pytest.raises(SecretsUnavailable, match="Another process has held"),
        locked(tmp_path / "lock", limit_s=0.0),
    ):
        pytest.fail("two have it")
    with locked(tmp_path / "lock", limit_s=0.0):
        pass


def test_what_an_ended_process_left_half_written_goes_with_the_next_write(
    store: FileSecretStore, tmp_path: Path
) -> None:
    store.set("openai", SECRET)
    left = tmp_path / "data" / ".secrets.bin.abcd1234"
    left.write_bytes(b"half")
    store.set("openai", "newer")
    assert not left.exists()
    assert store.get("openai") == "newer"


@pytest.mark.parametrize("name", ["data/secrets.bin", "config/secrets.key"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(
    store: FileSecretStore, tmp_path: Path, name: str
) -> None:
    store.set("openai", SECRET)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    for call in (lambda: store.get("openai"), lambda: store.set("openai", "new")):
        with pytest.raises(SecretsUnavailable, match="no ordinary file"):
            call()
