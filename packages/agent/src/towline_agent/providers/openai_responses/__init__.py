"""The dialect OpenAI Responses (A2.26 to A2.32)."""
