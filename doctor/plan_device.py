"""Which device a run is planned for: a named card, the card here, or the CPU with this machine's memory. Pure."""

from __future__ import annotations

import msgspec

from doctor.card_state import CardState, card_state, cpu_state, limited
from doctor.model import Snapshot
from doctor.plan_options import PlanOptions
from doctor.visible_gpus import visible_gpus
from runner.capability import parse_capability
from runner.memory_request import MemoryRequest, Precision


def default_precision(on_cpu: bool, card: CardState | None) -> Precision:
    """Return what a model is trained in when nobody says: the 16 bits that the device multiplies fast, else fp32."""
    if on_cpu:
        return "bf16" if card and card.has_bf16 else "fp32"
    capability = parse_capability(card.compute_capability) if card else None
    if capability is None or capability >= (8, 0):
        return "bf16"
    return "fp16" if capability >= (7, 0) else "fp32"


def device_of(snapshot: Snapshot, options: PlanOptions, cards: int = 1) -> CardState | None:
    """Return the card asked about, else the visible card with the most free memory, or the CPU where that is asked for; None: none could be read.

    Of several cards together the one with the least free counts, since each holds as much; of several processes on the CPU
    each has its share.
    """
    if options.card is not None:
        device: CardState | None = options.card
    elif options.on_cpu:
        device = cpu_state(snapshot.facts)
        device = limited(device, device.free_bytes // cards) if device and cards > 1 else device
    else:
        states = [state for gpu in visible_gpus(snapshot.facts) if (state := card_state(gpu)) is not None]
        states.sort(key=lambda one: -one.free_bytes)
        device = states[min(cards, len(states)) - 1] if states else None
    return limited(device, options.memory_limit_bytes) if device else None


def host_free_bytes(snapshot: Snapshot, options: PlanOptions) -> int | None:
    """Return what of the host's memory a process can have; None: that could not be read, or the host is another."""
    host = None if options.card else cpu_state(snapshot.facts)
    return host.free_bytes if host else None


def options_here(options: PlanOptions, snapshot: Snapshot) -> PlanOptions:
    """Return the options for real steps: on the CPU where there is no card, as ``doctor run`` trains there."""
    return options if options.recorded else on_cpu_without_card(options, snapshot)


def on_cpu_without_card(options: PlanOptions, snapshot: Snapshot) -> PlanOptions:
    """Return the options with the CPU in place of a card that is not there.

    Cards that could not be looked for are not taken for none.
    """
    looked = snapshot.facts.gpus.status in ("ok", "absent")
    if options.on_cpu or not looked or device_of(snapshot, options) is not None:
        return options
    return msgspec.structs.replace(options, on_cpu=True)


def placed(request: MemoryRequest, options: PlanOptions) -> MemoryRequest:
    """Return the request as the device takes it."""
    return msgspec.structs.replace(request, device="cpu") if options.on_cpu else request
