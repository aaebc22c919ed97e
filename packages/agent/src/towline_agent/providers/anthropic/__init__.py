"""Anthropic's Messages API and every gateway that speaks it."""
