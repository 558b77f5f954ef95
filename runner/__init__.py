"""The training side: profiles, plans, run directories, events, and the training loop itself.

Nothing here imports ``doctor``: a run starts and ends without our diagnostics in its process. ``doctor run``
copies this package alone into ``RUN_DIR/code/`` and starts it there with the examined interpreter.
"""

__version__ = "0.1.0"


def log(*, step: int, **values: object) -> None:
    """Record one step of your own training loop in a run that ``doctor run -- COMMAND`` supervises.

    ``runner.log(step=step, loss=loss, lr=lr, samples=len(batch))``; after an evaluation
    ``runner.log(step=step, val_loss=..., val_accuracy=..., val_samples=...)``.
    """
    from runner.recording import log as record

    record(step=step, **values)
