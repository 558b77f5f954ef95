"""``doctor metrics``: a run as Prometheus text on 127.0.0.1, for a dashboard of one's own."""

from __future__ import annotations

import argparse
import sys

from doctor.commands import CommandError, Exit
from doctor.commands.run_resume import no_such_run
from doctor.commands.watch import unreadable
from doctor.language import say
from runner.text import t

PORT = 9187


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", default="last", metavar="RUN", help=say("a run's directory, its name, or last (default)")
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="N", help=say("on which port (default: 9187; 0: a free one)")
    )  # fmt: skip
    parser.add_argument("--once", action="store_true", help=say("print the text once and leave"))


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.metrics_server import ADDRESS, make_server
    from doctor.render.prometheus import CONTENT_TYPE, metrics_text

    if not 0 <= namespace.port <= 65535:
        raise CommandError(t("--port takes 0 to 65535"), Exit.USAGE)
    try:
        watcher = service.watch_run(namespace.name)
        watcher.poll()
    except FileNotFoundError as error:
        raise CommandError(no_such_run(namespace.name, error), Exit.USAGE) from None
    except OSError as error:
        raise CommandError(unreadable(namespace.name, error)) from None

    def text() -> str:
        state = watcher.poll()
        return metrics_text(watcher.name, state, watcher.status(), watcher.now())

    if namespace.once:
        sys.stdout.write(text())
        return Exit.OK
    try:
        server = make_server(namespace.port, text, CONTENT_TYPE)
    except OSError as error:
        words = t("port {port} cannot be used: {error}; another one: --port N", port=namespace.port,
                  error=error.strerror or str(error))  # fmt: skip
        raise CommandError(words, Exit.USAGE) from None
    print(f"http://{ADDRESS}:{server.server_address[1]}/metrics", flush=True)
    print(say("Prometheus text on 127.0.0.1, until Ctrl-C"), file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()
    return Exit.OK
