"""``doctor tune``: the largest micro-batch that fits this device, found by trying it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from doctor.commands import CommandError, Exit
from doctor.commands.planned_step import add_machine, add_step, add_subject, examined, planned_step

if TYPE_CHECKING:
    from doctor.measuring import Measured


def configure(parser: argparse.ArgumentParser) -> None:
    add_subject(parser)
    add_step(parser)
    add_machine(parser)


def run(namespace: argparse.Namespace) -> int:
    from doctor import service
    from doctor.memory_troubles import CannotMeasure
    from doctor.plan_options import PlanOptions

    options = PlanOptions(on_cpu=namespace.cpu, memory_limit_bytes=namespace.memory_limit)
    snapshot = examined(namespace.python, None)
    options = service.options_here(options, snapshot)
    request = planned_step(namespace, snapshot, options).request
    try:
        found = service.tune_batch(request, snapshot, options, namespace.limit_seconds, _say)
    except CannotMeasure as error:
        raise CommandError(error.text, Exit.COULD_NOT_LOOK) from None
    if namespace.json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        from doctor.render.layout import columns
        from doctor.render.measured_text import tuned_lines

        print("\n".join(tuned_lines(found, request, columns(sys.stdout))))
    return Exit.OK if found.search.largest else Exit.FOUND


def _say(measured: Measured) -> None:
    from doctor.render.measured_text import measured_line

    print(measured_line(measured), file=sys.stderr, flush=True)
