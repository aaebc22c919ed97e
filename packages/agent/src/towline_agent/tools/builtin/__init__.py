"""Tools that come with the library."""

from towline_agent.tools.tool import Tool

__all__ = ["builtin_tools"]


def builtin_tools() -> tuple[Tool, ...]:
    """All of them, in the order a model should read them."""
    # Making tools takes time, and many programs bring their own alone.
    from towline_agent.tools.builtin.code_tools import code_tools
    from towline_agent.tools.builtin.files import list_dir, read_file
    from towline_agent.tools.builtin.find import find_files
    from towline_agent.tools.builtin.image import view_image
    from towline_agent.tools.builtin.jobs import job
    from towline_agent.tools.builtin.move import create_dir, delete_path, move_path, rename_path
    from towline_agent.tools.builtin.now import make_now
    from towline_agent.tools.builtin.patch import apply_patch
    from towline_agent.tools.builtin.program import run_program, run_task, shell
    from towline_agent.tools.builtin.search import search_text
    from towline_agent.tools.builtin.todo import todo_write
    from towline_agent.tools.builtin.write import create_file, edit_file, write_file
    from towline_agent.tools.web.fetch import make_web_tools
    from towline_agent.tools.web.screenshot import find_browser, make_screenshot

    looking = (read_file, list_dir, find_files, search_text, view_image)
    writing = (create_file, write_file, edit_file, apply_patch)
    moving = (create_dir, rename_path, move_path, delete_path)
    running = (run_program, run_task, shell, job)
    browser = find_browser()
    pictures = () if browser is None else (make_screenshot(browser),)
    web = (*make_web_tools(), *pictures)
    own = (todo_write, make_now())
    return (*looking, *writing, *moving, *code_tools(), *running, *web, *own)
