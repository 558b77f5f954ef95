"""``--web``: the full-screen view in a browser, for those whose terminal is a poor place; through an SSH tunnel."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from doctor.commands import CommandError, Exit, complain
from doctor.language import say

PACKAGES = ("textual_serve", "aiohttp", "aiohttp_jinja2", "textual")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--web", action="store_true", default=argparse.SUPPRESS,
        help=say("show it in a browser: prints a link for an SSH tunnel, and serves on 127.0.0.1 until Ctrl-C"),
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=argparse.SUPPRESS, metavar="N",
        help=say("with --web: on which port (default: the first free one from 8321 on)"),
    )  # fmt: skip


def is_wanted(namespace: argparse.Namespace) -> bool:
    """Return whether the view goes to a browser; raises CommandError for a port without one."""
    from runner.text import t

    if getattr(namespace, "port", None) is not None and not getattr(namespace, "web", False):
        raise CommandError(t("--port goes with --web"), Exit.USAGE)
    return bool(getattr(namespace, "web", False))


def serve(namespace: argparse.Namespace, view: Sequence[str] = ()) -> int:
    """Serve the view that ``view`` (options of :mod:`doctor.tui.served`) opens, until Ctrl-C."""
    from runner.text import t

    try:
        from doctor import web
        from doctor.web_access import Access
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise CommandError(
            t("The view in a browser needs the [web] extra: pip install 'rundoctor[web]'. `doctor watch` works without it."),
            Exit.USAGE,
        ) from None  # fmt: skip
    from doctor.own_code import own_argv

    port = getattr(namespace, "port", None)
    if port is not None and not 0 <= port <= 65535:
        raise CommandError(t("--port takes 0 to 65535"), Exit.USAGE)
    try:
        listener = web.open_port(port)
    except OSError as error:
        words = t("port {port} cannot be used: {error}; another one: --port N", port=web.PORT if port is None else port,
                  error=error.strerror or str(error))  # fmt: skip
        raise CommandError(words, Exit.USAGE) from None
    if namespace.lang:
        os.environ["DOCTOR_LANG"] = namespace.lang  # the view's own process reads it
    access, number = Access(), listener.getsockname()[1]
    _tell(number, access.token or "", port)
    web.serve(listener, own_argv("doctor.tui.served", *view), access)
    return Exit.OK


def _tell(number: int, token: str, asked: int | None) -> None:
    """Print the link on stdout, and on stderr how to get there."""
    from doctor.web import PORT
    from doctor.web_tunnel import tunnel
    from runner.text import t

    if asked is None and number != PORT:
        complain(t("port {taken} is taken; this view is on {port}", taken=PORT, port=number))
    way = tunnel(number, os.environ.get("USER") or os.environ.get("LOGNAME") or "root", os.environ)
    lines = [say("On your own computer, in another terminal, type:"), f"  {way.command}"]
    if way.has_gaps:
        lines.append(say("  (HOST and PORT: as in the ssh command that you logged in with)"))
    elif way.is_private:
        lines.append(
            say("  (a private address: where your own ssh command names another host or port, take those)")
        )
    lines.append(say("Then open this link there; it works once:"))
    print("\n".join(lines), file=sys.stderr, flush=True)
    print(f"http://127.0.0.1:{number}/?token={token}", flush=True)
    print(say("Ctrl-C ends the view. A run goes on without it."), file=sys.stderr, flush=True)
