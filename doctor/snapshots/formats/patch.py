"""The changes to the code since its commit, as ``git apply`` reads them. Pure."""

from __future__ import annotations

from doctor.model import GitState, Snapshot, Text, t
from doctor.redact_provenance import patch_text
from doctor.snapshots.formats.rendered import FormatError, Rendered


def render(snapshot: Snapshot) -> Rendered:
    provenance = snapshot.facts.provenance.value
    state = provenance.git if provenance else None
    if state is None or state.patch is None:
        raise FormatError(_why_none(state))
    if state.patch_is_base64:
        raise FormatError(t("the patch is not UTF-8: take it out of the file itself (facts.provenance.value.git.patch, base64)"))  # fmt: skip
    lost = [t("untracked files are not in it: {count}, named in the snapshot", count=state.untracked_count)] if state.untracked_count else []  # fmt: skip
    return Rendered(text=patch_text(state.patch, False), lost=tuple(lost), file_name="changes.patch")


def _why_none(state: GitState | None) -> Text:
    if state is None:
        return t("the snapshot was not taken in a git working tree")
    return state.patch_why or state.why or t("there were no changes since the commit")
