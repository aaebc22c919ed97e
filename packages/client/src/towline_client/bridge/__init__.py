"""What a program answers by itself: calls of its own tools, permissions, questions (C5.12)."""
