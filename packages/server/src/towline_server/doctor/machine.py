"""What a server needs of this machine beside its store: a port, and its web page."""

from towline_protocol import UsageError
from towline_server.doctor.finding import Finding, fault, fine, warning
from towline_server.errors import AddressInUse
from towline_server.stream.listener import open_listener
from towline_server.web.serve import load_web_app

__all__ = ["check_page", "check_port"]


def check_page() -> Finding:
    """Whether the page was built into this installation."""
    build = load_web_app().build
    if build is not None:
        return fine("page", f"The web page is there, build {build}.")
    return warning(
        "page",
        "The web page is not built, so only terminals can talk to this server. In a clone run "
        "`make web`; elsewhere install towline-server again.",
    )


def check_port(host: str, port: int) -> Finding:
    """Whether a server could listen, found out by listening for a moment.

    Args:
        host: The address in the settings.
        port: The port in the settings.
    """
    try:
        open_listener(host, port).close()
    except AddressInUse:
        return warning(
            "port",
            f"Port {port} at {host!r} is held by another program; `towline up` takes the next free "
            "one.",
        )
    except UsageError as error:
        return fault("port", error.message)
    return fine("port", f"Port {port} at {host!r} is free.")
