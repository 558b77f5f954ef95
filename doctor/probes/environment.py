"""The session's variables: values only of those on the allow-list, of all others the name alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from doctor.allowed_variables import is_allowed
from doctor.model import Environment, Reading, ok
from doctor.redact_secrets import without_secrets
from runner.strings import printable

if TYPE_CHECKING:
    from doctor.probes import Context


def probe(context: Context) -> Reading[Environment]:
    """Take the variables of this process, which are those of the session that will train."""
    return ok(take_variables(context.environ), "environ")


def take_variables(environ: Mapping[str, str]) -> Environment:
    """Return what may be known of ``environ``. Credentials inside an allowed value (a proxy's) stay behind too."""
    allowed = {name: value for name, value in environ.items() if is_allowed(name)}
    values = {printable(name): without_secrets(printable(value)) for name, value in allowed.items()}
    return Environment(
        variables=dict(sorted(values.items())),
        names=tuple(sorted(printable(name) for name in environ if name not in allowed)),
    )
