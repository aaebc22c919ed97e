"""OpenAI Chat Completions and every gateway that speaks it."""
