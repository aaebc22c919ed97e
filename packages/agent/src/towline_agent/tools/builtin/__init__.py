"""Tools that come with the library."""

from towline_agent.tools.tool import Tool

__all__ = ["builtin_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, in the order a model should read them."""
    # Making tools takes time, and many programs bring their own alone.
    from towline_agent.tools.builtin.files import list_dir, read_file
    from towline_agent.tools.builtin.now import make_now
    from towline_agent.tools.builtin.program import run_program
    from towline_agent.tools.builtin.todo import todo_write
    from towline_agent.tools.web.fetch import make_web_tools
    from towline_agent.tools.web.screenshot import find_browser, make_screenshot

    browser = find_browser()
    pictures = () if browser is None else (make_screenshot(browser),)
    web = (*make_web_tools(), *pictures)
    return (read_file, list_dir, run_program, *web, todo_write, make_now())
