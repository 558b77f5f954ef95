"""Patterns of what a shell or the system under a script lacks: the right to run, a free port, a locale, a Windows path."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # bash: ./run_sft.sh: Permission denied   |   bash: ./run_sft.sh: 权限不够
    Pattern(
        id="script-not-executable",
        regex=r"(?P<file>[\w./~-]+\.(?:sh|py)): Permission denied|(?P<file2>[\w./~-]+\.(?:sh|py)): 权限不够",
        meaning=t("{file}{file2} has no permission to run: the execute bit is lost in zip files, on network disks and on the way from Windows.", file="", file2=""),
        advice=t("`bash {file}{file2}` (a .py with `python`) needs none; `chmod +x {file}{file2}` sets it, where the disk can hold it.", file="", file2=""),
    ),
    # -bash: /root/autodl-tmp/miniconda3/bin/conda: /root/miniconda3/bin/python: bad interpreter: No such file or directory   |   /root/env/bin/pip: /root/old/bin/python3: 解释器错误: 没有那个文件或目录
    Pattern(
        id="environment-moved",
        regex=r"(?P<script>[\w./-]+): (?P<python>\S*python[\d.]*): bad interpreter|(?P<script2>[\w./-]+)[:：] ?(?P<python2>\S*python[\d.]*)[:：] ?解释器错误",
        meaning=t("{script}{script2} was made for {python}{python2}, which is not there: the environment was moved, copied or renamed.", script="", script2="", python="", python2=""),
        advice=t("conda and venv do not survive a move: make it anew in its place (`conda env export`, `pip freeze` from the old one, or conda-pack), or move it back; `python -m pip` and `python -m conda` still work where python itself does."),
        hides=("windows-line-ends",),
    ),
    # OSError: Cannot find empty port in range: 6006-6006. You can specify a different port by setting the GRADIO_SERVER_PORT environment variable
    Pattern(
        id="web-port-taken",
        regex=r"Cannot find empty port in range: (?P<first>\d+)-(?P<last>\d+)",
        meaning=t("No port from {first} to {last} is free for the web page: mostly an earlier start of it still runs.", first="?", last="?"),
        advice=t("`ss -ltnp | grep {first}` shows which process; end it (`kill PID`), or GRADIO_SERVER_PORT=PORT. AutoDL shows 6006 and 6008 to the outside.", first="PORT"),
    ),
    # locale.Error: unsupported locale setting
    Pattern(
        id="locale-not-there",
        regex=r"locale\.Error: unsupported locale setting",
        meaning=t("LANG or an LC_ variable names a locale that this image does not have; SSH brings yours along (zh_CN.UTF-8)."),
        advice=t("`export LANG=C.UTF-8 LC_ALL=C.UTF-8`, which nearly every image has and which is UTF-8 as well; `locale -a` lists what is there (CentOS 7: en_US.UTF-8)."),
        confirms=("locale-default-encoding",),
    ),
    # FileNotFoundError: [Errno 2] No such file or directory: 'D:\\LLaMA-Factory\\data\\train.json'
    Pattern(
        id="windows-path",
        regex=r"No such file or directory: '(?P<path>[A-Za-z]:(?:\\\\|/)[^'\n]*)'",
        meaning=t("{path} is a path of a Windows computer and is not there: a rented Linux machine has no drives.", path="?"),
        advice=t("Copy the file over and write its path here (`ls /root/autodl-tmp`). On Windows itself: r'D:\\data\\train.json', and look whether Explorer hides the ending (train.json.txt)."),
    ),
    # Could not create share link. Missing file: /root/miniconda3/lib/python3.10/site-packages/gradio/frpc_linux_amd64_v0.2.
    Pattern(
        id="gradio-share",
        regex=r"Could not create share link",
        meaning=t("gradio's public link goes through a program and a server abroad that were not reached; the page itself runs."),
        advice=t("Do without share=True: launch(server_name='0.0.0.0', server_port=6006) behind the platform's own address (AutoDL: custom service), or `ssh -L 7860:localhost:7860` from your computer."),
    ),
    # finetune/lora/lora.sh: line 7: --model_id_or_path: command not found   |   run.sh: 行 7: --model：未找到命令
    Pattern(
        id="continuation-lost",
        regex=r"(?P<file>\S+): (?:line|行) ?(?P<line>\d+): (?P<option>--?[A-Za-z][\w-]*): command not found|(?P<file2>\S+)[:：] ?行 ?(?P<line2>\d+)[:：] ?(?P<option2>--?[A-Za-z][\w-]*)[:：] ?未找到命令",
        meaning=t("The shell took {option}{option2} for a command: the line before it does not end in a backslash, or a blank stands behind the backslash.", option="", option2=""),
        advice=t("Look at the line above line {line}{line2} with `cat -A`: it must end in \\$ and nothing after the backslash; a ^M there means Windows line ends (`sed -i 's/\\r$//' FILE`).", line="", line2=""),
        hides=("command-not-found",),
    ),
    # python: can't open file '/root/train.py': [Errno 2] No such file or directory
    Pattern(
        id="script-not-there",
        regex=r"can't open file '(?P<file>[^'\n]+)': \[Errno 2\]",
        meaning=t("There is no {file}: the shell stands in another folder than the script's, or the name is misspelled.", file="?"),
        advice=t("`pwd; ls`, then `cd` into the project's folder (AutoDL: mostly under /root/autodl-tmp), or give the script's whole path."),
    ),
)  # fmt: skip
