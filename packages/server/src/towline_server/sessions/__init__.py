"""Conversations that outlive their clients and their server."""
