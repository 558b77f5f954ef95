"""What pasting and logging do to a text (colours, line ends, stamps before each line), and lines that only speak of an error."""

from __future__ import annotations

import html
import re

# ESC[0;31mOSErrorESC[0m   |   [0;31mOSError[0m, where copying lost the escape itself
_COLOUR = re.compile(
    r"(?:\x1b|\^\[)\[[0-9;?]*[A-Za-z]|\[\d{1,3}(?:;\d{1,3})*m|\x1b\][^\x07\n]*\x07|\x1b[()][A-Z0-9]"
)
# 2025-07-03T14:20:51.565839352Z Killed   |   vllm-1  | ValueError: ...
_STAMP = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) |[a-z][\w.-]*-\d+ {1,6}\| ?)", re.MULTILINE
)
# <span class="ansi-red-fg">OSError</span>: Couldn&#39;t find
_TAG = re.compile(r"</?(?:span|div|pre|code|p|br|font|b|i)\b[^<>\n]*>")
STAMPED_WITHIN = 4000
"""Characters at the text's end in which a stamp shows that its lines have them."""

# except torch.cuda.OutOfMemoryError:   |   if "out of memory" in str(e):   |   print("CUDA out of memory")   |   --retry-on-oom   halve the batch after "CUDA out of memory"   |   - Fixed: "CUDA out of memory" is retried
_QUOTING = re.compile(
    r"[ \t]*(?:(?:except|if|elif)\b[^\n]*:[ \t]*$|(?:print|warnings\.warn|log(?:ger|ging)?\.\w+)\(|# |--[a-z][\w-]*[ ,=]|[-*] [^\n`\"]*[`\"])",
    re.MULTILINE,
)


def plain(text: str) -> str:
    """Return ``text`` without colours, HTML, carriage returns at line ends and stamps; its lines stay the same in number."""
    if "\x1b" in text or "[0m" in text:
        text = _COLOUR.sub("", text)
    if "</span>" in text or "</pre>" in text:
        text = html.unescape(_TAG.sub("", text))
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
    return _STAMP.sub("", text) if _STAMP.search(text[-STAMPED_WITHIN:]) else text


def only_quotes(text: str, position: int) -> bool:
    """Whether the line of ``position`` is source or a help text, which names an error that need not have happened."""
    return _QUOTING.match(text, text.rfind("\n", 0, position) + 1) is not None
