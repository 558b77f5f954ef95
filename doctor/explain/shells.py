"""Patterns of the shell and of sessions: a script that may not run, a session that is gone, a broken line, a dead kernel, a locale."""

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
    # error connecting to /tmp/tmux-0/default (No such file or directory)   |   no server running on /tmp/tmux-1000/default   |   There is no screen to be resumed matching train.
    Pattern(
        id="session-gone",
        regex=r"error connecting to /tmp/tmux-|no server running on /tmp/tmux-|There is no screen to be (?:resumed|attached)|^can't find session: ",
        meaning=t("No such session is left. It ended with its program, or with a restart of the machine or container, which ends them all; sessions of another user are not shown."),
        advice=t("`ps -o lstart= -p 1` shows since when this machine runs. The run goes on from its last checkpoint; with `doctor run --detach` its log and its end stay readable after a restart."),
    ),
    # client_loop: send disconnect: Connection reset by peer   |   packet_write_wait: Connection to 10.0.0.3 port 22: Broken pipe   |   Connection to connect.westb.seetacloud.com closed by remote host.
    Pattern(
        id="ssh-line-broken",
        regex=r"client_loop: send disconnect: |packet_write_wait: Connection to |Connection to \S+ closed by remote host",
        meaning=t("The SSH line broke. What ran in its foreground was told to end (SIGHUP); what ran in tmux, screen or under nohup goes on."),
        advice=t("Log in again and look: `tmux ls`, `nvidia-smi`. Start long runs in tmux or with `doctor run --detach`; `ServerAliveInterval 30` in ~/.ssh/config of your own computer keeps idle lines open."),
        confirms=("session-ends-with-ssh",),
    ),
    # The kernel for train.ipynb appears to have died. It will restart automatically.   |   train.ipynb 的内核似乎挂掉了，它很快将自动重启。   |   The Kernel crashed while executing code in the current cell or a previous cell.
    Pattern(
        id="kernel-died",
        regex=r"appears to have died\. It will restart|内核似乎挂掉了|The [Kk]ernel crashed while executing code|DeadKernelError: Kernel died|^Kernel Restarting$",
        meaning=t("The notebook's process ended without a word of Python: mostly it was killed for want of memory (the container's, not the card's), else native code crashed."),
        advice=t("Save the notebook as a script (`jupyter nbconvert --to script FILE`) and run it in a terminal: there stands Killed or Segmentation fault. `doctor check` reads the container's limit and its count of kills."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host", "extension-torch-abi-mismatch"),
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
        advice=t("`export LANG=C.UTF-8 LC_ALL=C.UTF-8`, which every image has and which is UTF-8 as well; `locale -a` lists what is there."),
        confirms=("locale-default-encoding",),
    ),
    # FileNotFoundError: [Errno 2] No such file or directory: 'D:\\LLaMA-Factory\\data\\train.json'
    Pattern(
        id="windows-path",
        regex=r"No such file or directory: '(?P<path>[A-Za-z]:(?:\\\\|/)[^'\n]*)'",
        meaning=t("{path} is a path of a Windows computer and is not there: a rented Linux machine has no drives.", path="?"),
        advice=t("Copy the file over and write its path here (`ls /root/autodl-tmp`). On Windows itself: r'D:\\data\\train.json', and look whether Explorer hides the ending (train.json.txt)."),
    ),
)  # fmt: skip
