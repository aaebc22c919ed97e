"""Providers of other packages, by entry points of a distribution that is really there."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline_agent.extension import installed_extensions, installed_names, named_extensions
from towline_agent.providers.catalog import connect
from towline_agent.providers.registry import PROVIDER_GROUP, installed_providers
from towline_protocol import UsageError

CODE = '''
from towline_agent.testing import ScriptedProvider
from towline_protocol import UsageError

imported = True
broken_value = 3


def connect(model, env):
    """A provider for one model."""
    if not model:
        raise UsageError("Name a model of acme.")
    provider = ScriptedProvider("Hi")
    provider.asked = (model, env.get("ACME_API_KEY"))
    return provider


def fail(model, env):
    """A broken one."""
    raise RuntimeError("secret words")


def nothing(model, env):
    """No provider at all."""
    return 7
'''

POINTS = """
[towline.providers]
acme = acme_llm:connect
acme-fails = acme_llm:fail
acme-nothing = acme_llm:nothing
acme-gone = acme_gone:connect
openai = acme_llm:fail
"""


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution with entry points, as an installer leaves it on the path."""
    (tmp_path / "acme_llm.py").write_text(CODE)
    info = tmp_path / "acme_llm-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-llm\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("acme_llm", None)


@pytest.mark.rules("A4.62")
def test_an_installed_package_brings_a_provider_along() -> None:
    provider = connect("acme/big/model", {"ACME_API_KEY": "k"})
    assert getattr(provider, "asked", None) == ("big/model", "k")
    with pytest.raises(UsageError, match="Name a model of acme"):
        connect("acme", {})


@pytest.mark.rules("A4.62")
def test_names_are_known_without_importing_anything() -> None:
    assert {"acme", "acme-gone"} <= set(installed_providers())
    assert "acme_llm" not in sys.modules
    assert installed_names("towline.nothing") == ()


def test_the_catalogs_own_providers_cannot_be_taken_over() -> None:
    assert type(connect("groq/x", {})).__module__.startswith("towline_agent.")
    assert "ScriptedProvider" not in repr(connect("groq/x", {}))


@pytest.mark.rules("A4.65")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("acme-fails/x", "failed with RuntimeError"),
        ("acme-nothing/x", "no Provider"),
        ("acme-gone/x", "cannot be loaded (ModuleNotFoundError: No module named 'acme_gone')"),
        ("acme-unknown/x", "There is no provider 'acme-unknown'"),
        ("local", "The model 'local' belongs to the towline app"),
        ("local/qwen2.5-coder-1.5b", "such as 'ollama/qwen3'"),
    ],
)
def test_a_broken_provider_is_said_with_what_to_do(name: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        connect(name, {})
    assert words in error.value.message
    assert "secret words" not in error.value.message


@pytest.mark.rules("A4.62", "A4.64", "A4.65")
def test_what_is_switched_off_is_not_even_imported() -> None:
    loaded = installed_extensions(PROVIDER_GROUP, off={"acme-gone"}, only={"acme-gone"})
    assert (loaded.found, loaded.notices) == ((), ())
    loaded = installed_extensions(PROVIDER_GROUP, only={"acme", "acme-gone"})
    assert [extension.name for extension in loaded.found] == ["acme"]
    assert len(loaded.notices) == 1
    assert "'acme-llm'" in loaded.notices[0]


@pytest.mark.rules("A4.63", "A4.65")
def test_what_settings_name_is_loaded_and_what_is_broken_is_a_notice() -> None:
    loaded = named_extensions(["acme_llm:imported", "acme_llm:absent", "nowhere.at.all:x"])
    assert [(extension.name, extension.value) for extension in loaded.found] == [
        ("acme_llm:imported", True)
    ]
    absent, nowhere = loaded.notices
    assert "absent" in absent
    assert "nowhere" in nowhere
