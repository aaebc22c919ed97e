"""Tools that come with the library."""

from towline_agent.tools.tool import Tool

__all__ = ["builtin_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, in the order a model should read them."""
    # Making tools takes time, and many programs bring their own alone.
    from towline_agent.tools.builtin.files import list_dir, read_file
    from towline_agent.tools.builtin.jobs import job
    from towline_agent.tools.builtin.now import make_now
    from towline_agent.tools.builtin.program import run_program, run_task, shell

    return (read_file, list_dir, run_program, run_task, shell, job, make_now())
