"""Patterns of the way to the machine and from it: ssh, tmux, tunnels, git, docker."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # WARNING: UNPROTECTED PRIVATE KEY FILE!   |   Permissions 0644 for '/home/me/.ssh/id_ed25519' are too open.
    Pattern(
        id="ssh-key-open",
        regex=r"UNPROTECTED PRIVATE KEY FILE|Permissions \d+ for '(?P<key>[^'\n]+)' are too open",
        meaning=t("ssh does not use a private key that others may read ({key}).", key="?"),
        advice=t("`chmod 600 {key}` (and `chmod 700 ~/.ssh`). Under /mnt/c of WSL that does nothing: copy the key to ~/.ssh first.", key="~/.ssh/id_ed25519"),
        hides=("ssh-key-refused",),
    ),
    # git@github.com: Permission denied (publickey).
    Pattern(
        id="git-key-refused",
        regex=r"git@(?P<host>[\w.-]+): Permission denied \(publickey|remote: Support for password authentication was removed|fatal: Authentication failed for '(?P<url>[^'\n]+)'",
        meaning=t("The git server knows no key (or token) of this machine: a rented machine has none of yours."),
        advice=t("A public repository: clone its https:// address. A private one: a token in place of the password, or `ssh -A` from your own machine to bring your key along; leave no private key on a rented disk."),
        hides=("ssh-key-refused",),
    ),
    # root@213.173.98.12: Permission denied (publickey).
    Pattern(
        id="ssh-key-refused",
        regex=r"Permission denied \((?:publickey|password|keyboard-interactive)[\w,-]*\)",
        meaning=t("The server accepts none of the keys offered: it does not have your public key, or ssh offers another one, or the user name is another."),
        advice=t("`ssh -v -i ~/.ssh/KEY -p PORT root@HOST` shows what is offered; enter the .pub file in the provider's panel, then restart the instance: most read it only at its start."),
    ),
    # WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!   |   Host key verification failed.
    Pattern(
        id="ssh-host-changed",
        regex=r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed",
        meaning=t("Another machine answers at this address and port than the one that ssh remembers; with rented machines that is usual, since addresses are used again."),
        advice=t("`ssh-keygen -R '[HOST]:PORT'` (without a port: -R HOST), and connect again. If the machine is still the same one, do not: ask the provider."),
    ),
    # ssh: connect to host 1.2.3.4 port 22: Connection refused   |   ssh: connect to host 1.2.3.4 port 22: Connection timed out
    Pattern(
        id="ssh-no-answer",
        regex=r"ssh: connect to host (?P<host>\S+) port (?P<port>\d+): (?P<why>Connection refused|Connection timed out|Operation timed out|No route to host|Network is unreachable)|kex_exchange_identification: (?P<why2>[^\n]{0,60})|ssh_exchange_identification: (?P<why3>[^\n]{0,60})",
        meaning=t("No ssh answers there ({why}{why2}{why3}): the instance is stopped or still starting, the port is another one, or a firewall stands between.", why="", why2="", why3=""),
        advice=t("Look at its state and its ssh command in the provider's panel: rented containers have a port of their own, not 22, and it changes at a restart."),
        hides=("hub-unreachable",),
    ),
    # client_loop: send disconnect: Broken pipe   |   Connection to 1.2.3.4 closed by remote host.   |   packet_write_wait: Connection to 1.2.3.4 port 22: Broken pipe
    Pattern(
        id="ssh-lost",
        regex=r"client_loop: send disconnect|packet_write_wait: Connection to|Connection to \S+ closed by remote host|Timeout, server \S+ not responding|Connection reset by \S+ port \d+",
        meaning=t("The ssh connection broke; what ran in its foreground got a hang-up and has mostly ended with it."),
        advice=t("Connect again and look (`doctor watch`, `ps`). Next time inside `tmux new -s train`, or `doctor run --detach`; `ServerAliveInterval 30` in ~/.ssh/config keeps a quiet connection alive."),
        confirms=("session-ends-with-ssh",),
    ),
    # open terminal failed: missing or unsuitable terminal: xterm-ghostty   |   Error opening terminal: xterm-kitty.   |   'xterm-ghostty': unknown terminal type.
    Pattern(
        id="terminal-unknown",
        regex=r"missing or unsuitable terminal: (?P<term>\S+)|Error opening terminal: (?P<term2>[\w.+-]+)|'(?P<term3>[\w.+-]+)': unknown terminal type",
        meaning=t("The machine does not know your terminal ({term}{term2}{term3}).", term="", term2="", term3=""),
        advice=t("`export TERM=xterm-256color` (in ~/.bashrc to keep it)."),
    ),
    # no server running on /tmp/tmux-0/default   |   There is no screen to be resumed.
    Pattern(
        id="tmux-none",
        regex=r"no server running on \S*tmux|error connecting to \S*tmux\S* \(No such file or directory\)|There is no screen to be (?:resumed|attached)|^no sessions\s*$|\[lost server\]|\[server exited(?: unexpectedly)?\]",
        meaning=t("No tmux or screen runs (any more) for this user: none was started, the machine or container was restarted, or it was ended for memory."),
        advice=t("`uptime` and `doctor check` tell whether it restarted; a run that writes a checkpoint is resumed, the screen's text is lost. `tmux ls` must be asked as the user that started it."),
        confirms=("process-killed-for-memory",),
    ),
    # channel 3: open failed: connect failed: Connection refused
    Pattern(
        id="tunnel-nothing-there",
        regex=r"channel \d+: open failed: connect failed",
        meaning=t("The ssh tunnel stands, but on the remote side nothing listens on that port."),
        advice=t("`ss -ltnp` there shows what listens where: the server (TensorBoard, Jupyter) is not started, or has another port."),
    ),
    # bind [127.0.0.1]:8888: Address already in use   |   channel_setup_fwd_listener_tcpip: cannot listen to port: 8888
    Pattern(
        id="tunnel-port-taken",
        regex=r"cannot listen to port: (?P<port>\d+)|Could not request local forwarding|^bind \[?[\d.:]+\]?:(?P<port2>\d+): Address already in use",
        meaning=t("The local end of the tunnel is taken: an earlier ssh with the same -L still runs on your own machine."),
        advice=t("Another local port: `ssh -L 8889:localhost:8888 ...`, and open localhost:8889."),
        hides=("port-in-use",),
    ),
    # fatal: detected dubious ownership in repository at '/workspace/project'
    Pattern(
        id="git-ownership",
        regex=r"detected dubious ownership in repository at '(?P<path>[^'\n]+)'",
        meaning=t("The repository {path} belongs to another user id, as on a volume of an earlier container, and git refuses it.", path="?"),
        advice=t("`git config --global --add safe.directory {path}`", path="PATH"),
    ),
    # fatal: https://modelscope.cn/models/damo/ofa/info/refs not valid: is this a git repository?
    Pattern(
        id="not-a-repository",
        regex=r"fatal: (?P<url>\S+?)/info/refs not valid: is this a git repository\?",
        meaning=t("{url} is the address of a page, not of a repository.", url="?"),
        advice=t("ModelScope: `git clone https://www.modelscope.cn/OWNER/NAME.git` (no /models/ in it), Hugging Face: https://huggingface.co/OWNER/NAME; simpler: `modelscope download --model OWNER/NAME`, `hf download OWNER/NAME`."),
    ),
    # git: 'lfs' is not a git command. See 'git --help'.   |   git：'lfs' 不是一个 git 命令。参见 'git --help'。   |   git-lfs filter-process: git-lfs: command not found
    Pattern(
        id="git-lfs-missing",
        regex=r"git: 'lfs' is not a git command|'lfs' 不是一个 git 命令|git-lfs: (?:command )?not found",
        meaning=t("The repository keeps its large files in Git LFS, which is not installed: only pointer files of some hundred bytes arrive."),
        advice=t("`apt-get install -y git-lfs && git lfs install && git lfs pull`; for models `hf download NAME` is simpler and goes on after a break."),
        hides=("command-not-found",),
    ),
    # batch response: This repository exceeded its LFS budget.   |   This repository is over its data quota. Account responsible for LFS bandwidth should purchase more data packs
    Pattern(
        id="git-lfs-quota",
        regex=r"exceeded its LFS budget|over its data quota",
        meaning=t("The owner of that repository has no LFS traffic left this month; nothing on this machine is wrong."),
        advice=t("Take the files from elsewhere (the Hub, a release, a mirror), or wait for the next month. `GIT_LFS_SKIP_SMUDGE=1 git clone ...` fetches the code alone."),
    ),
    # permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock   |   Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?
    Pattern(
        id="docker-daemon",
        regex=r"trying to connect to the Docker daemon socket|Cannot connect to the Docker daemon",
        meaning=t("This user may not speak to Docker, or no Docker runs here: a rented container has none inside."),
        advice=t("On a host of your own: `sudo usermod -aG docker $USER` and log in again, `systemctl start docker`. In a rented container choose the image in the provider's panel instead."),
    ),
    # exec /usr/bin/python3: exec format error   |   cannot execute binary file: Exec format error
    Pattern(
        id="wrong-processor",
        regex=r"[Ee]xec format error",
        meaning=t("The program or image is for another processor (x86_64 and arm64, as on GH200, are not interchangeable), or a script without #! in its first line."),
        advice=t("`uname -m`; take the build for it (images: --platform linux/arm64)."),
    ),
)  # fmt: skip
