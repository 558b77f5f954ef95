"""The command line: which verbs there are, and the exit codes. One verb a file.

``--help`` imports neither rich nor msgspec; a verb's module is imported when it is asked for.
"""

from __future__ import annotations

import argparse
import enum
import errno
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from doctor.commands import streams


class Exit(enum.IntEnum):
    """What a command's exit status means."""

    OK = 0
    """Done; for ``check``: nothing at or above --fail-on."""
    FOUND = 1
    """``check``: findings at or above --fail-on. Elsewhere: it did not work out, and stderr says why."""
    USAGE = 2
    """The command line, a profile or an input file is wrong; stderr says where."""
    COULD_NOT_LOOK = 3
    """A probe that the answer hangs on failed, or a check of ours broke."""
    STOPPED = 143
    """A run was stopped by a signal and is saved."""
    INTERRUPTED = 130
    """Ctrl-C."""


class CommandError(Exception):
    """Trouble for the user: a sentence (a ``Text`` or a string already in their language) and an exit code."""

    def __init__(self, text: object, code: Exit = Exit.FOUND) -> None:
        super().__init__(str(text))
        self.text = text
        self.code = code


# verb -> (one line of help, 一句话说明). Kept here so that `doctor --help` imports no verb.
VERBS: dict[str, tuple[str, str]] = {
    "check": ("what is wrong with this machine and environment, why, and what to do", "检查这台机器和环境：哪里有问题、为什么、怎么办"),
    "merge": ("recorded machines judged together: where they differ that should be alike", "把多台机器的快照放在一起判断：该一致的地方哪里不一致"),
    "recommend": ("which torch for this driver and these cards, and the commands to install it", "这个驱动和这些显卡该装哪个 torch，以及安装命令"),
    "explain": ("a traceback or a log, explained against this machine", "结合本机解释一段报错或日志"),
    "lint": ("common mistakes in a training script, judged by the versions installed", "训练脚本里的常见错误，按已安装的版本判断"),
    "fix": ("mend what is wrong, one step at a time, each shown first and undoable", "修复发现的问题：每一步先展示，再执行，都可撤销"),
    "undo": ("take a fix back", "撤销一次修复"),
    "journal": ("what the doctor changed on this machine", "doctor 在这台机器上改过什么"),
    "stage": ("put a data set on the fastest disk with room", "把数据集放到有空间的最快磁盘上"),
    "plan": ("will a run fit this GPU, which GPU would fit it, which batch", "这次训练显存够不够、该租哪张卡、batch 开多大"),
    "tune": ("the largest micro-batch that fits this device, found by trying it", "实测找出本机设备放得下的最大 micro-batch"),
    "bench": ("what makes this run's steps faster: each setting alone and together, in interleaved pairs", "实测什么能让训练更快：各项设置单独与合并，交替成对比较"),
    "run": ("start a seeded, resumable training run from a profile, resume one, or supervise a command of your own", "按配置启动可复现、可续训的训练，续训，或监护你自己的命令"),
    "watch": ("show a run, live or finished, from any SSH session", "查看一次训练（进行中或已结束），任何 SSH 会话都行"),
    "runs": ("list the runs here and what state they are in", "列出本地的训练及其状态"),
    "report": ("a run as a page to read or send, or two runs side by side", "把一次训练整理成可读、可发送的报告，或并排比较两次训练"),
    "predict": ("what a trained model says of your texts: a few, or a file of them", "让训练好的模型给文本打标签：几句话或整个文件"),
    "export": ("a trained model as ONNX, proven equal to torch; or as a folder or a model page to share", "把训练好的模型导出为 ONNX 并与 torch 逐项比对；或导出为可分享的文件夹、模型页"),
    "metrics": ("a run as Prometheus text on 127.0.0.1", "把一次训练以 Prometheus 文本提供在 127.0.0.1 上"),
    "prove": ("whether a run gives the same bits again: its first steps, trained twice and compared", "验证训练能否逐位复现：把前几步训练两遍并比较"),
    "stacks": ("where a process is now: its hottest Python stacks", "某个进程此刻在做什么：最热的 Python 调用栈"),
    "snapshot": ("the environment as a file: export, diff, verify, check, restore", "把环境存成文件：导出、比较、核对、预检、还原"),
    "env": ("list every Python environment found here, one verdict each; create one that fits", "列出本机的所有 Python 环境及各自结论；新建一个合适的环境"),
    "demo": ("check, then train the quickstart on real text, live", "先检查，再用真实文本跑一遍快速训练，实时显示"),
    "wheelhouse": ("collect the wheels for a machine without network", "为没有网络的机器收集安装包"),
    "help": ("what a finding means and what to do about it", "某条结论的含义与处理办法"),
    "hook": ("lines for ~/.bashrc that say one line about this machine at login", "写进 ~/.bashrc 的几行，登录时用一句话说明本机状态"),
    "completion": ("print a completion script for bash, zsh or tcsh", "输出 bash、zsh 或 tcsh 的补全脚本"),
}  # fmt: skip


# Verbs that neither read nor write in the working directory.
NEED_NO_FOLDER = ("help", "hook", "completion", "journal", "undo")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Every expected trouble is one line on stderr."""
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)


def _main(argv: Sequence[str] | None) -> int:
    streams.open_closed()
    arguments = list(sys.argv[1:] if argv is None else argv)
    streams.survive_bad_bytes()
    verb = next((word for word in arguments if word in VERBS), "")
    if verb in ("check", "plan") and argv is None:
        gc.disable()  # they live a quarter of a second in 30 MB; looking for cycles is a tenth of that
    language = _language(arguments)
    if arguments and not arguments[0].startswith("-") and arguments[0] not in VERBS:
        from doctor.commands.mistyped import meant

        complain(meant(arguments[0], VERBS))
        return Exit.USAGE
    from doctor.commands.parser import build_parser

    parser = build_parser(verb, language, arguments[:1] == [verb])
    in_terminal = sys.stdout.isatty() and sys.stdin.isatty()
    if not arguments and in_terminal and _has_folder():
        return _guarded(_open_view, argparse.Namespace(lang=None, readonly=False), language)
    arguments, command = _split_command(arguments) if verb in ("run", "bench") else (arguments, None)
    namespace = parser.parse_args(arguments)
    namespace.command = command
    if namespace.verb not in NEED_NO_FOLDER and not _has_folder():
        return _without_folder()
    if not namespace.verb:
        if in_terminal or hasattr(namespace, "web") or hasattr(namespace, "port"):
            return _guarded(_open_view, namespace, language)
        parser.print_help()
        return Exit.OK
    module = importlib.import_module(f"doctor.commands.{namespace.verb}")
    return _guarded(module.run, namespace, language)


def _open_view(namespace: argparse.Namespace) -> int:
    from doctor.commands import view

    return view.run(namespace)


def _split_command(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """Return what stands before ``--`` and the command after it; None: there is no ``--``.

    Not argparse's to take apart: what a command's own options mean is the command's business.
    """
    if "--" not in arguments:
        return arguments, None
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _language(arguments: list[str]) -> str:
    from doctor.language import choose_language, use_language

    option = None
    for index, word in enumerate(arguments):
        if word == "--":
            break
        if word.startswith("--lang="):
            option = word.partition("=")[2]
        elif word == "--lang" and index + 1 < len(arguments):
            option = arguments[index + 1]
    language = choose_language(option, os.environ, _saved_language())
    use_language(language)
    return language


def _saved_language() -> str | None:
    from doctor.settings import read_setting

    return read_setting("lang")


def _guarded(function: object, namespace: argparse.Namespace, language: str) -> int:
    try:
        code = int(function(namespace))  # type: ignore[operator]
        sys.stdout.flush()
        return code
    except CommandError as error:
        complain(error.text)
        return int(error.code)
    except KeyboardInterrupt:
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader (head, less) left: not an error. Python would complain again while flushing at exit.
        streams.send_nowhere()
        return int(128 + signal.SIGPIPE)
    except OSError as error:
        return _resources_at_their_end(error)


def _resources_at_their_end(error: OSError) -> int:
    """Say that stdout takes no more, or that no more files may be opened. Any other error is raised again."""
    from runner.text import t

    why = error.strerror or str(error)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        complain(t("this process may not open more files ({error}): raise the limit with ulimit -n 1024, and run this again", error=why))  # fmt: skip
        return int(Exit.COULD_NOT_LOOK)
    if error.errno not in streams.UNWRITABLE:
        raise error
    streams.send_nowhere()
    complain(t("the output cannot be written: {error}", error=why))
    return int(Exit.FOUND)


def complain(text: object) -> None:
    """Say ``text`` on stderr, after what stdout holds, in the user's language and without control characters."""
    from doctor.language import say
    from runner.strings import shown

    words = say(text) if hasattr(text, "msgid") else str(text)  # type: ignore[arg-type]
    sys.stdout.flush()
    print("doctor:", "\n".join(shown(line) for line in words.splitlines()), file=sys.stderr)


def _without_folder() -> int:
    from doctor.language import say

    complain(say("the folder you are in was deleted: go to another one with cd, and run this again"))
    return Exit.USAGE


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not needed for --help
    except OSError:
        return False
    return True
