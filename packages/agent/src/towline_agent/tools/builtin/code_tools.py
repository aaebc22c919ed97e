"""The tools that know code (A5.T3 to A5.T5, A5.T8 to A5.T10)."""

from towline_agent.tools.builtin.code_fixes import apply_quick_fix, format_file, organize_imports
from towline_agent.tools.builtin.dependencies import make_dependency_tools
from towline_agent.tools.builtin.diagnostics import get_diagnostics, project_diagnostics
from towline_agent.tools.builtin.find_symbol import find_symbol
from towline_agent.tools.builtin.project_overview import project_overview
from towline_agent.tools.tool import Tool

__all__ = ["code_tools"]


def code_tools() -> tuple[Tool, ...]:
    """All of them, in the order a model should read them."""
    return (
        project_overview,
        find_symbol,
        get_diagnostics,
        project_diagnostics,
        apply_quick_fix,
        format_file,
        organize_imports,
        *make_dependency_tools(),
    )
