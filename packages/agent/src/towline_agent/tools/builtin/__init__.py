"""Tools that come with the library."""

from towline_agent.tools.tool import Tool

__all__ = ["builtin_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, in the order a model should read them."""
    # Making tools takes time, and many programs bring their own alone.
    from towline_agent.tools.builtin.after_edit import AFTER_EDIT
    from towline_agent.tools.builtin.code_tools import code_tools
    from towline_agent.tools.builtin.files import list_dir, read_file
    from towline_agent.tools.builtin.new_findings import tell_new_findings
    from towline_agent.tools.builtin.now import make_now
    from towline_agent.tools.builtin.program import run_program

    if tell_new_findings not in AFTER_EDIT:
        AFTER_EDIT.append(tell_new_findings)
    return (read_file, list_dir, *code_tools(), run_program, make_now())
