"""Packages of the extra `coding`: imported when they are first needed, and missed in a sentence."""

from importlib import import_module
from typing import Any

from towline_agent.errors import ToolError

__all__ = ["import_needed"]


def import_needed(name: str) -> Any:
    """A module of a package that need not be installed.

    Raises:
        ToolError: It is not; the message says what to install.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolError(
            f"This needs the package {name.partition('.')[0]!r}, which is not installed; a person "
            "can install towline-agent[coding]."
        ) from error
