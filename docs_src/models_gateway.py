from towline_agent import Agent, Model, OpenAIChat

gateway = OpenAIChat(
    "qwen3-32b",
    base_url="https://llm.example/v1",
    api_key="the-key",
    extra_headers={"x-team": "books"},
    facts=Model(
        provider="example", id="qwen3-32b", window=32_768, price_input=0.1, price_output=0.4
    ),
)
result = Agent(gateway).run_sync("Hello")
print(result.final_message, result.cost)
