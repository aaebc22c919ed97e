"""The first event of a session: what it is made of, checked."""

from collections.abc import Sequence
from pathlib import Path

from towline_protocol import CreateSession, SessionCreated
from towline_server.sessions.agents import Agents
from towline_server.sessions.client_tool import check_tools, taken_names
from towline_server.sessions.folder import find_folder
from towline_server.sessions.session import Session
from towline_server.sessions.settings import check_mode, clean_labels, clean_title

__all__ = ["begin", "begin_fork"]


def begin(
    new: CreateSession, *, agents: Agents, roots: Sequence[Path], mode: str
) -> SessionCreated:
    """The beginning of what a client asks for.

    Args:
        new: What it asks for.
        agents: The agents and models there are.
        roots: The folders this server may work in.
        mode: The mode of a session that names none.

    Raises:
        UsageError: The agent, the mode, the title or a label does not hold.
        Rejected: A client tool or the model does not hold.
        RootForbidden: `cwd` lies outside the roots (D2).
    """
    spec = agents.offered(new.agent or agents.default_agent)
    check_tools(new.tools, taken_names(spec))
    if new.model is not None:
        agents.check_model(new.model)
    return SessionCreated(
        agent=spec.name,
        model=new.model or agents.default_model,
        mode=check_mode(new.mode or mode),
        title=None if new.title is None else clean_title(new.title),
        cwd=find_folder(new.cwd, roots),
        tools=new.tools,
        labels=clean_labels(new.labels),
        limits=new.limits,
    )


def begin_fork(source: Session, title: str | None) -> SessionCreated:
    """The beginning of a session that goes on from another one, with all that was set on it.

    Args:
        source: The other one.
        title: Its title; `None` for the other one's.

    Raises:
        UsageError: The title is empty.
    """
    view = source.log.view
    return SessionCreated(
        agent=view.agent,
        model=view.model,
        mode=view.mode,
        title=view.title if title is None else clean_title(title),
        cwd=view.cwd,
        forked_from=source.log.session,
        tools=source.log.ahead.clients.given,
        labels=view.labels,
        limits=source.log.ahead.own_limits,
    )
