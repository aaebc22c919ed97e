"""The system keyring as another program: one that works, and all the ways in which it does not."""

import logging
import select
import socket
import sys
from pathlib import Path

import pytest

from towline.secrets import (
    SecretStore,
    SecretsUnavailable,
    keep_key,
    open_wallet,
    stored_keys,
    stored_providers,
)
from towline.secrets.keyring_store import KeyringStore

pytestmark = pytest.mark.slow  # a keyring and its bus run for each test

ANSWERS_S = 60.0
"""Asking takes half a second; this allows for a busy machine."""
HANGS_S = 0.5
KEY = "sk-very-secret-1234"


def _store(environ: dict[str, str], limit_s: float = ANSWERS_S) -> KeyringStore:
    return KeyringStore("towline", limit_s=limit_s, environ=environ)


def _be(environ: dict[str, str], mood: str) -> None:
    """Put the keyring into a mood."""
    (Path(environ["FAKE_KEYRING"]) / "mood").write_text(mood)


def _calls(environ: dict[str, str]) -> list[str]:
    """What the keyring was asked so far."""
    path = Path(environ["FAKE_KEYRING"]) / "calls"
    return path.read_text().split() if path.exists() else []


@pytest.mark.rules("A2.73", "A2.74")
def test_what_the_keyring_keeps_is_found_again_and_can_be_forgotten(
    keyring_environ: dict[str, str],
) -> None:
    store: SecretStore = _store(keyring_environ)
    assert store.get("wallet") is None
    store.set("wallet", "sk-ü-1")
    assert _store(keyring_environ).get("wallet") == "sk-ü-1"
    assert store.title == "the system keyring (Fake Keyring)"
    store.delete("wallet")
    store.delete("wallet")
    assert store.get("wallet") is None


@pytest.mark.rules("A2.74")
@pytest.mark.parametrize(
    ("mood", "says"),
    [
        ("hang", "did not answer within 0.5 s"),
        ("locked", "The system keyring is locked"),
        ("gone", r"failed \(no answer\)"),
    ],
)
def test_a_keyring_that_does_not_answer_is_asked_once_and_keeps_nobody_waiting(
    keyring_environ: dict[str, str], mood: str, says: str
) -> None:
    _be(keyring_environ, mood)
    store = _store(keyring_environ, HANGS_S if mood == "hang" else ANSWERS_S)
    with pytest.raises(SecretsUnavailable, match=says) as caught:
        store.set("wallet", KEY)
    assert "sk-" not in caught.value.message
    asked = len(_calls(keyring_environ))
    for call in (lambda: store.get("wallet"), lambda: store.delete("wallet")):
        with pytest.raises(SecretsUnavailable, match=says):
            call()
    assert len(_calls(keyring_environ)) == asked


@pytest.mark.rules("A2.74")
def test_a_keyring_that_lies_keeps_nothing_and_the_file_does(
    keyring_environ: dict[str, str],
) -> None:
    store = _store(keyring_environ)
    store.set("other", "1")
    _be(keyring_environ, "lies")
    with pytest.raises(SecretsUnavailable, match="says it did as told, and did not"):
        store.delete("other")
    placed = keep_key(open_wallet(keyring_environ), "openai", KEY)
    assert not placed.preferred
    assert "says it did as told" in placed.why
    assert stored_keys("openai", keyring_environ) == (KEY,)


def test_what_a_keyring_prints_is_no_answer(keyring_environ: dict[str, str]) -> None:
    _be(keyring_environ, "chatty")
    store = _store(keyring_environ)
    store.set("wallet", KEY)
    assert store.get("wallet") == KEY


@pytest.mark.rules("A2.74")
@pytest.mark.skipif(sys.platform != "linux", reason="LINUX ALONE asks its keyring over D-Bus")
def test_a_bus_that_takes_the_call_and_says_nothing_is_given_up_on(
    keyring_environ: dict[str, str], tmp_path: Path
) -> None:
    del keyring_environ["PYTHON_KEYRING_BACKEND"]
    with socket.socket(socket.AF_UNIX) as bus:
        bus.bind(str(tmp_path / "bus"))
        bus.listen()
        keyring_environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={tmp_path / 'bus'}"
        placed = keep_key(open_wallet(keyring_environ), "openai", KEY)
        called, _, _ = select.select([bus], [], [], 0)
    assert called, "the keyring was not asked over this bus"
    assert not placed.preferred
    assert stored_keys("openai", keyring_environ) == (KEY,)


@pytest.mark.rules("A2.74")
@pytest.mark.parametrize(
    "backend",
    [
        "keyring.backends.fail.Keyring",
        "keyring.backends.null.Keyring",
        "fake_keyring.PlainFile",
    ],
)
def test_what_hides_nothing_is_no_keyring(keyring_environ: dict[str, str], backend: str) -> None:
    keyring_environ["PYTHON_KEYRING_BACKEND"] = backend
    with pytest.raises(SecretsUnavailable, match="There is no system keyring"):
        _store(keyring_environ).set("wallet", KEY)
    assert _calls(keyring_environ) == []


def test_a_file_in_the_current_folder_is_not_taken_for_the_keyring(
    headless_environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyring.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SecretsUnavailable, match="There is no system keyring"):
        _store(headless_environ).get("wallet")
    assert not (tmp_path / "ran").exists()


@pytest.mark.rules("A2.74")
def test_keys_go_to_the_keyring_and_the_product_finds_them_with_one_look(
    keyring_environ: dict[str, str], tmp_path: Path
) -> None:
    placed = keep_key(open_wallet(keyring_environ), "openai", KEY)
    keep_key(open_wallet(keyring_environ), "groq", "gsk-other")
    assert (placed.title, placed.preferred) == ("the system keyring (Fake Keyring)", True)
    assert not (tmp_path / "towline" / "data" / "secrets.bin").exists()
    assert KEY not in (tmp_path / "towline" / "data" / "secrets.json").read_text()
    asked = len(_calls(keyring_environ))
    assert stored_keys("openai", keyring_environ) == (KEY,)
    assert stored_keys("groq", keyring_environ) == ("gsk-other",)
    assert stored_keys("mistral", keyring_environ) == ()
    assert set(stored_providers(keyring_environ)) == {"openai", "groq"}
    assert _calls(keyring_environ)[asked:] == ["get"]


@pytest.mark.rules("A2.74")
def test_a_keyring_that_holds_nothing_of_ours_is_not_asked_at_a_start(
    keyring_environ: dict[str, str],
) -> None:
    _be(keyring_environ, "hang")
    assert stored_keys("openai", keyring_environ) == ()
    assert _calls(keyring_environ) == []


@pytest.mark.rules("A2.74")
def test_a_locked_keyring_costs_its_keys_and_one_line(
    keyring_environ: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    keep_key(open_wallet(keyring_environ), "openai", KEY)
    _be(keyring_environ, "locked")
    keep_key(open_wallet(keyring_environ), "groq", "gsk-other")
    with caplog.at_level(logging.WARNING):
        assert stored_keys("openai", keyring_environ) == ()
        assert stored_keys("groq", keyring_environ) == ("gsk-other",)
    (record,) = caplog.records
    said = record.getMessage()
    assert "openai" in said
    assert "is locked" in said
    assert "sk-" not in said


def test_a_start_with_damaged_files_goes_on_without_the_keys(
    keyring_environ: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keep_key(open_wallet(keyring_environ), "openai", KEY)
    (tmp_path / "towline" / "data" / "secrets.json").write_text("{")
    _be(keyring_environ, "locked")
    with caplog.at_level(logging.WARNING):
        assert stored_keys("openai", keyring_environ) == ()
        assert stored_keys("groq", keyring_environ) == ()
    (record,) = caplog.records
    assert "was lost or damaged" in record.getMessage()
    assert "The system keyring is locked" in record.getMessage()


def test_a_machine_that_can_start_no_program_has_no_keyring(
    keyring_environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(SecretsUnavailable, match=r"could not be asked \(No such file"):
        _store(keyring_environ).get("wallet")


@pytest.mark.rules("A2.74")
def test_two_homes_share_a_keyring_without_meeting(keyring_environ: dict[str, str]) -> None:
    other = {**keyring_environ, "TOWLINE_HOME": keyring_environ["TOWLINE_HOME"] + "-other"}
    keep_key(open_wallet(keyring_environ), "openai", KEY)
    keep_key(open_wallet(other), "openai", "sk-other-5678")
    assert stored_keys("openai", keyring_environ) == (KEY,)
    assert stored_keys("openai", other) == ("sk-other-5678",)
