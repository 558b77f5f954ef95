"""``doctor plan PROFILE --data``: what a profile trains on, read once before any run."""

from __future__ import annotations

import argparse
import sys

from doctor.commands import CommandError, Exit
from doctor.language import say


def run(namespace: argparse.Namespace) -> int:
    """Show the page; FOUND where nothing can be trained on these rows."""
    import msgspec

    from doctor import service
    from doctor.launch import LaunchError
    from doctor.render.data_text import data_lines
    from doctor.render.layout import columns
    from runner.profile import ProfileError

    if not namespace.profile:
        raise CommandError(say("--data looks at the rows of a profile: name one"), Exit.USAGE)
    try:
        page = service.data_page(namespace.profile, namespace.set)
    except ProfileError as error:
        raise CommandError("\n  ".join([error.source + ":", *map(say, error.problems)]), Exit.USAGE) from None
    except LaunchError as error:
        raise CommandError(error.text, Exit.USAGE) from None
    if namespace.json:
        tree = {**msgspec.to_builtins(page), "can_train": page.can_train}
        print(msgspec.json.format(msgspec.json.encode(tree), indent=1).decode())
    else:
        print("\n".join(data_lines(page, columns(sys.stdout))))
    return Exit.OK if page.can_train else Exit.FOUND
