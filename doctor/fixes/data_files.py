"""Text files that are not UTF-8: written anew, the original kept beside. Pure."""

from __future__ import annotations

from doctor.fixes import fix
from doctor.model import Data, Finding, Fix, RecodeFile, Snapshot, Text, t

# GBK and GB2312 are parts of GB18030. UTF-16 tells its byte order itself.
_CODECS = {"gb18030": "gb18030", "gbk": "gb18030", "gb2312": "gb18030", "big5": "big5", "utf-16": "utf-16", "shift_jis": "shift_jis", "utf-8-bom": "utf-8-sig"}  # fmt: skip


@fix("file-encoding-not-utf8", "utf8-bom")
def write_as_utf8(finding: Finding, snapshot: Snapshot) -> Fix | Text:
    data, project = snapshot.facts.data.value or Data(), snapshot.facts.project.value
    file = next((item for item in data.files if item.path == finding.subject), None)
    codec = _CODECS.get((file.encoding or "").lower()) if file else None
    if file is None or codec is None:
        return t(
            "in this encoding every byte is a letter, so that nothing tells whether it is the right one: convert it by hand and look at it"
        )
    path = file.path
    if not path.startswith("/"):
        if project is None or not project.cwd:
            return t("{file} is a relative path, and of which folder is not known", file=path)
        path = f"{project.cwd.rstrip('/')}/{path}"
    return Fix(
        id=finding.id,
        subject=finding.subject,
        title=t("write {file} as UTF-8; the original stays as {kept}", file=path, kept=f"{path}.original"),
        steps=(RecodeFile(path=path, encoding=codec, kept=f"{path}.original"),),
        touches=("data",),
        risk=t("it takes the file's size once more on this disk"),
    )  # fmt: skip
