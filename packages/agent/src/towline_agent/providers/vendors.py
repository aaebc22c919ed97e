"""The vendors that are known, as data (A2.81)."""

from typing import Final

import msgspec

from towline_agent.providers.openai_chat.flags import OFFICIAL_FLAGS, ChatFlags

__all__ = ["VENDORS", "Vendor"]

_LOCAL_IDLE_S: Final = 900.0
"""A local model reads a long prompt for minutes before its first byte."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor or local server that speaks Chat Completions."""

    name: str
    """The first part of `provider/model`."""
    title: str
    """Its name for people."""
    base_url: str
    """Where it is; empty when only the person knows."""
    key_settings: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that is set wins (A2.85)."""
    url_setting: str | None = None
    """The environment variable that names another address."""
    local: bool = False
    """It runs on the person's machine: free, patient, and found by asking its port (A2.86)."""
    default_model: str | None = None
    """The strongest current model that works here with tools (A2.89)."""
    prefer: str | None = None
    """A pattern of models to prefer among the live ones; its groups are version numbers, the
    newest wins (A2.88)."""
    flags: ChatFlags = ChatFlags()
    """How it speaks."""
    named_choice: bool = True
    """Whether a tool can be asked for by name."""
    none_without_tools: bool = False
    """Whether tools must be left out for tool choice `none`."""
    idle_s: float | None = None
    """Seconds of silence that are no fault; `None` for the usual."""


VENDORS: Final[dict[str, Vendor]] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="anthropic",
            title="Anthropic",
            base_url="https://api.anthropic.com/v1",
            key_settings=("ANTHROPIC_API_KEY",),
            default_model="claude-opus-5-5",
            # its compatible endpoint ignores both
            flags=ChatFlags(effort=None, schema_output=False),
        ),
        Vendor(
            name="openai",
            title="OpenAI",
            base_url="https://api.openai.com/v1",
            key_settings=("OPENAI_API_KEY",),
            url_setting="OPENAI_BASE_URL",
            # gpt-6.1-sol and gpt-6-astra take tools on the Responses API alone
            default_model="gpt-5.6-sol",
            flags=OFFICIAL_FLAGS,
        ),
        Vendor(
            name="gemini",
            title="Google Gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta/openai",
            key_settings=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            default_model="gemini-3.8-flash",
            prefer=r"gemini-(\d+)\.(\d+)-flash",
            flags=ChatFlags(
                call_signatures=True, efforts=("none", "minimal", "low", "medium", "high")
            ),
        ),
        Vendor(
            name="openrouter",
            title="OpenRouter",
            base_url="https://openrouter.ai/api/v1",
            key_settings=("OPENROUTER_API_KEY",),
            default_model="openai/gpt-6.1-sol",
            flags=ChatFlags(replay="reasoning_details", effort="reasoning"),
        ),
        Vendor(
            name="xai",
            title="xAI",
            base_url="https://api.x.ai/v1",
            key_settings=("XAI_API_KEY",),
            default_model="grok-4.7",
            flags=ChatFlags(efforts=("low", "medium", "high")),
        ),
        Vendor(
            name="deepseek",
            title="DeepSeek",
            base_url="https://api.deepseek.com/v1",
            key_settings=("DEEPSEEK_API_KEY",),
            default_model="deepseek-v4-pro",
            flags=ChatFlags(replay="reasoning_content", schema_output=False),
        ),
        Vendor(
            name="mistral",
            title="Mistral",
            base_url="https://api.mistral.ai/v1",
            key_settings=("MISTRAL_API_KEY",),
            default_model="mistral-large-4",
            flags=ChatFlags(usage_option=False, short_call_ids=True, efforts=("none", "high")),
        ),
        Vendor(
            name="groq",
            title="Groq",
            base_url="https://api.groq.com/openai/v1",
            key_settings=("GROQ_API_KEY",),
            default_model="openai/gpt-oss-120b",
            flags=ChatFlags(efforts=("low", "medium", "high")),
        ),
        Vendor(
            name="together",
            title="Together",
            base_url="https://api.together.xyz/v1",
            key_settings=("TOGETHER_API_KEY",),
            default_model="moonshotai/Kimi-K3.1-Pro",
            flags=ChatFlags(think_tags=True, efforts=("low", "medium", "high")),
        ),
        Vendor(
            name="ollama",
            title="Ollama",
            base_url="http://127.0.0.1:11434/v1",
            url_setting="OLLAMA_HOST",
            local=True,
            flags=ChatFlags(efforts=("none", "low", "medium", "high")),
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="lmstudio",
            title="LM Studio",
            base_url="http://127.0.0.1:1234/v1",
            local=True,
            flags=ChatFlags(think_tags=True, efforts=("low", "medium", "high")),
            named_choice=False,
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="llamacpp",
            title="llama.cpp",
            base_url="http://127.0.0.1:8080/v1",
            local=True,
            flags=ChatFlags(effort=None),
            named_choice=False,
            none_without_tools=True,
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="custom",
            title="An address of your own",
            base_url="",
            key_settings=("TOWLINE_API_KEY",),
            url_setting="TOWLINE_BASE_URL",
        ),
    )
}
"""All of them by name, in the order in which a key that is found is taken."""
