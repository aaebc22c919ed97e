"""The vendors that are known, as data (A2.81)."""

from typing import Final

import msgspec

from towline_agent.providers.anthropic.flags import OFFICIAL_FLAGS as CLAUDE_FLAGS
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.openai_chat.flags import (
    AZURE_FLAGS,
    OFFICIAL_FLAGS,
    ChatFlags,
)

__all__ = ["DIALECTS", "VENDORS", "Vendor"]

DIALECTS: Final = ("chat", "responses", "anthropic", "gemini")
"""How a provider can be asked: Chat Completions, Responses, Anthropic's Messages, Gemini's API."""

_LOCAL_IDLE_S: Final = 900.0
"""A local model reads a long prompt for minutes before its first byte."""
_NO_VERSION: Final = "/chat/completions"
"""Ends an address under which the paths lie without a `/v1`; see `parse_address`."""


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """One vendor, gateway or local server."""

    name: str
    """The first part of `provider/model`."""
    title: str
    """Its name for people."""
    base_url: str
    """Where it is; empty when only the person knows."""
    dialect: str = "chat"
    """How it is asked, one of `DIALECTS`; `name+dialect/model` asks it in another one."""
    moved_dialect: str | None = None
    """How an address is asked that a person names instead of the vendor's; `None` for the same."""
    other_urls: dict[str, str] = {}
    """Where it is asked in another dialect, when that is another address."""
    key_settings: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first that is set wins (A2.85). A comma
    separates several keys in the same name with an `S` behind it."""
    key_optional: bool = False
    """Whether it may need none."""
    url_setting: str | None = None
    """The environment variable that names another address."""
    header_setting: str | None = None
    """The environment variable that holds further headers."""
    local: bool = False
    """It runs on the person's machine: free, patient, and found by asking its port (A2.86)."""
    default_model: str | None = None
    """The strongest current model that works here with tools (A2.89); `None` where the person has
    to name one."""
    prefer: str | None = None
    """A pattern of models to prefer among the live ones; its groups are version numbers, the
    newest wins (A2.88)."""
    flags: ChatFlags = ChatFlags()
    """How it speaks Chat Completions."""
    messages: AnthropicFlags = AnthropicFlags(web_search=None)
    """How it speaks Anthropic's Messages."""
    named_choice: bool = True
    """Whether a tool can be asked for by name."""
    none_without_tools: bool = False
    """Whether tools must be left out for tool choice `none`."""
    idle_s: float | None = None
    """Seconds of silence that are no fault; `None` for the usual."""


_GPT: Final = ChatFlags(efforts=("low", "medium", "high"))
_REPLAYED: Final = ChatFlags(effort=None, replay="reasoning_content")
"""Thinks between its calls and wants to read it again; how much has a field of its own."""
_BEARER: Final = AnthropicFlags(bearer=True, web_search=None)
_UNSIGNED: Final = AnthropicFlags(bearer=True, unsigned_thinking=True, web_search=None)
_KIMI: Final = ChatFlags(effort=None, replay="reasoning_content", cache_key=True)

VENDORS: Final[dict[str, Vendor]] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="anthropic",
            title="Anthropic",
            base_url="https://api.anthropic.com/v1",
            dialect="anthropic",
            key_settings=("ANTHROPIC_API_KEY",),
            url_setting="ANTHROPIC_BASE_URL",
            default_model="claude-opus-5-5",
            # its compatible endpoint ignores both
            flags=ChatFlags(effort=None, schema_output=False),
            messages=CLAUDE_FLAGS,
        ),
        Vendor(
            name="openai",
            title="OpenAI",
            base_url="https://api.openai.com/v1",
            dialect="responses",
            moved_dialect="chat",  # most servers that stand in for it speak that alone
            key_settings=("OPENAI_API_KEY",),
            url_setting="OPENAI_BASE_URL",
            default_model="gpt-6.1-sol",
            flags=OFFICIAL_FLAGS,
        ),
        Vendor(
            name="gemini",
            title="Google Gemini",
            base_url="https://generativelanguage.googleapis.com/v1beta",
            dialect="gemini",
            other_urls={"chat": "https://generativelanguage.googleapis.com/v1beta/openai"},
            key_settings=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            url_setting="GOOGLE_GEMINI_BASE_URL",
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
            messages=_BEARER,
        ),
        Vendor(
            name="xai",
            title="xAI",
            base_url="https://api.x.ai/v1",
            key_settings=("XAI_API_KEY",),
            default_model="grok-4.7",
            flags=_GPT,
        ),
        Vendor(
            name="deepseek",
            title="DeepSeek",
            base_url="https://api.deepseek.com/v1",
            other_urls={"anthropic": "https://api.deepseek.com/anthropic"},
            key_settings=("DEEPSEEK_API_KEY",),
            default_model="deepseek-v4-pro",
            flags=ChatFlags(
                replay="reasoning_content", schema_output=False, efforts=("low", "high", "max")
            ),
            messages=AnthropicFlags(unsigned_thinking=True, web_search=None),
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
            flags=_GPT,
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
            name="fireworks",
            title="Fireworks",
            base_url="https://api.fireworks.ai/inference/v1",
            key_settings=("FIREWORKS_API_KEY",),
            default_model="accounts/fireworks/models/kimi-k3p1-pro",
            flags=ChatFlags(
                replay="reasoning_content",
                efforts=("none", "low", "medium", "high"),
                cache_key=True,
            ),
        ),
        Vendor(
            name="cerebras",
            title="Cerebras",
            base_url="https://api.cerebras.ai/v1",
            key_settings=("CEREBRAS_API_KEY",),
            default_model="gpt-oss-120b",
            flags=ChatFlags(replay="reasoning", efforts=("low", "medium", "high")),
        ),
        Vendor(
            name="kimi",
            title="Kimi (Moonshot AI)",
            base_url="https://api.moonshot.ai/v1",
            other_urls={"anthropic": "https://api.moonshot.ai/anthropic"},
            key_settings=("MOONSHOT_API_KEY", "KIMI_API_KEY"),
            url_setting="MOONSHOT_BASE_URL",
            default_model="kimi-k3.1-pro",
            flags=_KIMI,
            messages=_UNSIGNED,
        ),
        Vendor(
            name="qwen",
            title="Qwen (Model Studio)",
            base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            other_urls={"anthropic": "https://dashscope-intl.aliyuncs.com/apps/anthropic"},
            key_settings=("DASHSCOPE_API_KEY",),
            url_setting="DASHSCOPE_BASE_URL",
            default_model="qwen3.7-max",
            prefer=r"qwen(\d+)\.(\d+)-max",
            flags=ChatFlags(effort=None),
            messages=_UNSIGNED,
        ),
        Vendor(
            name="glm",
            title="GLM (Z.ai)",
            base_url="https://api.z.ai/api/paas/v4",
            other_urls={"anthropic": "https://api.z.ai/api/anthropic"},
            key_settings=("ZAI_API_KEY", "ZHIPU_API_KEY"),
            url_setting="ZAI_BASE_URL",
            default_model="glm-5.3",
            flags=_REPLAYED,
            messages=_UNSIGNED,
        ),
        Vendor(
            name="minimax",
            title="MiniMax",
            base_url="https://api.minimax.io/anthropic",
            dialect="anthropic",
            other_urls={"chat": "https://api.minimax.io/v1"},
            key_settings=("MINIMAX_API_KEY",),
            url_setting="MINIMAX_BASE_URL",
            default_model="MiniMax-M3",
            flags=ChatFlags(effort=None, think_tags=True),
            messages=AnthropicFlags(unsigned_thinking=True, web_search=None),
        ),
        Vendor(
            name="vercel",
            title="Vercel AI Gateway",
            base_url="https://ai-gateway.vercel.sh/v1",
            key_settings=("AI_GATEWAY_API_KEY",),
            default_model="openai/gpt-6.1-sol",
            flags=ChatFlags(replay="reasoning_details", effort="reasoning"),
            messages=_BEARER,
        ),
        Vendor(
            name="vertex",
            title="Google Vertex AI",
            base_url="https://aiplatform.googleapis.com",
            dialect="gemini",
            key_settings=("VERTEX_ACCESS_TOKEN",),
            default_model="gemini-3.8-flash",
            prefer=r"gemini-(\d+)\.(\d+)-flash",
        ),
        Vendor(
            name="azure",
            title="Azure OpenAI",
            base_url="",
            dialect="responses",
            # `/openai/v1` takes a key as a bearer token too, and no `api-version`
            key_settings=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
            url_setting="AZURE_OPENAI_ENDPOINT",
            flags=AZURE_FLAGS,
        ),
        Vendor(
            name="perplexity",
            title="Perplexity",
            base_url=f"https://api.perplexity.ai{_NO_VERSION}",
            key_settings=("PERPLEXITY_API_KEY", "PPLX_API_KEY"),
            default_model="sonar-pro",
            flags=ChatFlags(efforts=("minimal", "low", "medium", "high")),
        ),
        # A token that is often there for other things: nothing is taken before a model is named.
        Vendor(
            name="huggingface",
            title="Hugging Face",
            base_url="https://router.huggingface.co/v1",
            key_settings=("HF_TOKEN",),
            flags=_GPT,
        ),
        Vendor(
            name="copilot",
            title="Copilot",
            base_url=f"https://api.githubcopilot.com{_NO_VERSION}",
            key_settings=("COPILOT_API_KEY",),
            url_setting="COPILOT_BASE_URL",
            header_setting="COPILOT_HEADERS",
            flags=_GPT,
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
            url_setting="LMSTUDIO_BASE_URL",
            local=True,
            flags=ChatFlags(think_tags=True, efforts=("low", "medium", "high")),
            named_choice=False,
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="llamacpp",
            title="llama.cpp",
            base_url="http://127.0.0.1:8080/v1",
            url_setting="LLAMACPP_BASE_URL",
            local=True,
            flags=ChatFlags(effort=None),
            messages=AnthropicFlags(
                cache_marks=False,
                schema_output=False,
                documents=False,
                unsigned_thinking=True,
                web_search=None,
            ),
            named_choice=False,
            none_without_tools=True,
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="vllm",
            title="vLLM",
            base_url="http://127.0.0.1:8000/v1",
            url_setting="VLLM_BASE_URL",
            local=True,
            flags=_GPT,
            idle_s=_LOCAL_IDLE_S,
        ),
        Vendor(
            name="custom",
            title="An address of your own",
            base_url="",
            key_settings=("TOWLINE_API_KEY",),
            key_optional=True,
            url_setting="TOWLINE_BASE_URL",
            header_setting="TOWLINE_HEADERS",
        ),
    )
}
"""All of them by name, in the order in which a key that is found is taken."""
