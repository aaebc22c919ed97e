from towline_agent import Agent, AuthenticationFailed, ProviderError, RateLimited

try:
    print(Agent("openai").run_sync("Hello").final_message)
except RateLimited as error:
    print(f"Again in {error.retry_after_s} s, please.")
except AuthenticationFailed as error:
    print(f"Look at the key: {error.message}")
except ProviderError as error:
    print(error.code, error.reason, error.status, error.message)
