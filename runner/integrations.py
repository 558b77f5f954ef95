"""Callbacks by which a training that is not ours tells the doctor what it does.

::

    from runner.integrations import DoctorCallback            # transformers.Trainer(..., callbacks=[DoctorCallback()])
    from runner.integrations import DoctorLightningCallback   # lightning.Trainer(callbacks=[DoctorLightningCallback()])
    import runner; runner.log(step=step, loss=loss)           # a loop of one's own

They need ``pip install rundoctor`` (without extras) in the environment that trains: ``doctor run -- COMMAND`` puts nothing
on the command's path. Each framework is imported only when its callback is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.lightning_callback import DoctorLightningCallback
    from runner.trainer_callback import DoctorCallback

__all__ = ["DoctorCallback", "DoctorLightningCallback"]


def __getattr__(name: str) -> Any:
    if name == "DoctorCallback":
        from runner.trainer_callback import DoctorCallback

        return DoctorCallback
    if name == "DoctorLightningCallback":
        from runner.lightning_callback import DoctorLightningCallback

        return DoctorLightningCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
