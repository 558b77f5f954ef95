"""How a command of the user's own failed, told: an error in its log, a signal, a kill for memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from doctor.ended import Ended, notes_of
from doctor.judge import judge
from doctor.model import Facts, KernelLog, Snapshot, ok
from doctor.probes import Context
from doctor.probes.cgroup import parse_cgroup
from doctor.supervisor import Supervisor
from doctor.watching import RunWatcher
from runner.command_plan import CommandPlan
from runner.events import read_events
from runner.rundir import RunDir
from runner.strings import fill
from tests.launch.shell import Shell, wait_until
from tests.probes.roots import MOUNTS_V2, link_namespaces, write_tree

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB"


def test_a_cuda_out_of_memory_is_explained(shell: Shell) -> None:
    shell.script(
        f"import sys\nprint('step=1 loss=0.5')\nprint({OOM!r}, file=sys.stderr)\nraise SystemExit(1)"
    )
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 1 and "The card's memory did not suffice for 2.00 GiB more." in err
    note = next(event for event in shell.events("note") if event.data.get("explains") == "cuda-oom")
    assert (note.data["level"], note.data["line_number"]) == ("fail", 2)
    assert RunWatcher(shell.one).poll().finished["outcome"] == "failed"


def test_an_unknown_failure_keeps_its_last_error_line(shell: Shell) -> None:
    shell.script("class Odd(Exception): pass\nraise Odd('the moon is full')")
    code, _, err = shell.run("--", sys.executable, "train.py")
    assert code == 1 and "the moon is full" in err


def test_a_script_that_kills_itself_is_told_from_one_killed_for_memory(shell: Shell) -> None:
    shell.script("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    code, _, _ = shell.run("--", sys.executable, "train.py")
    assert code == 137
    assert any(note.startswith("Ended by SIGKILL") for note in shell.notes())
    assert not any("for memory while the command ran" in note for note in shell.notes())


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param(
            Ended(-9, 3, 4, memory_limit="16.0 GiB"),
            "The kernel killed {count} process(es)",
            id="the counter moved",
        ),
        pytest.param(
            Ended(1, 3, 5),
            "The kernel killed {count} process(es)",
            id="a rank was killed, the launcher exits 1",
        ),
        pytest.param(Ended(-9, 3, 3), "Ended by SIGKILL from outside", id="the counter did not move"),
        pytest.param(
            Ended(137, 0, 0), "Ended with status 137: what it ran was ended by SIGKILL", id="under a shell"
        ),
        pytest.param(
            Ended(-9, None, None), "Ended by SIGKILL. Whether for memory cannot be seen", id="nobody counts"
        ),
        pytest.param(Ended(-11, 0, 0), "Ended by the signal {name}.", id="a crash in native code"),
        pytest.param(Ended(1, 0, 0), "Ended with status {code}; no error", id="no word in the log"),
    ],
)
def test_how_a_command_ended_is_told_by_signal_and_counters(ended: Ended, expected: str) -> None:
    notes = list(notes_of(ended, "hello\n", 0, None))
    assert notes[0].text.msgid.startswith(expected)


def memory_group(limit_bytes: int) -> Path | None:
    """Make a control group of version 1 below our own, with a memory limit; None where that is not permitted."""
    groups = parse_cgroup(Path("/proc/self/cgroup").read_text())
    group = (
        Path("/sys/fs/cgroup/memory") / groups.get("memory", "/").lstrip("/") / f"doctor-test-{os.getpid()}"
    )
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    except OSError:
        return None
    return group


def test_a_command_killed_for_memory_is_recognised_by_the_kernels_counter(shell: Shell) -> None:
    group = memory_group(400 << 20)
    if group is None:
        pytest.skip("no memory group can be made here")
    try:
        shell.script(
            "print('step=1 loss=0.5', flush=True)\nhog = []\nwhile True: hog.append(bytearray(8 << 20))"
        )
        process = shell.begin(
            "--",
            sys.executable,
            "train.py",
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )
        _, err = process.communicate(timeout=120)
        assert process.returncode == 137, err.decode()
        assert "killed 1 process(es) of this container for memory" in err.decode() and "400" in err.decode()
    finally:
        shell.close()
        wait_until(lambda: not (group / "cgroup.procs").read_text().split())
        group.rmdir()


def test_the_explanation_is_of_this_start_alone(shell: Shell) -> None:
    shell.script(
        f"import os\nif os.environ['DOCTOR_RETRY'] == '0':\n    print({OOM!r})\n    raise SystemExit(1)\nraise ValueError('second')"
    )
    shell.run("--retry", "1", "--", sys.executable, "train.py")
    lines = [event.data.get("explains") or event.data["text"]["msgid"] for event in shell.events("note")]
    assert lines.count("cuda-oom") == 1


V1 = {
    "/proc/self/mountinfo": "700 600 0:60 / / rw - overlay overlay rw\n"
    "711 700 0:62 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
    "/proc/self/cgroup": "4:memory:/docker/abc\n",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{16 << 30}\n",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": "1000\n",
    "/sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill {count}\n",
}
V2 = {
    "/proc/self/mountinfo": MOUNTS_V2,
    "/proc/self/cgroup": "0::/\n",
    "/sys/fs/cgroup/cgroup.events": "populated 1\n",
    "/sys/fs/cgroup/memory.max": f"{16 << 30}\n",
    "/sys/fs/cgroup/memory.current": "1000\n",
    "/sys/fs/cgroup/memory.events": "low 0\noom {count}\noom_kill {count}\noom_group_kill 0\n",
}
UNREADABLE = {"/proc/self/mountinfo": MOUNTS_V2, "/proc/self/cgroup": "0::/\n"}


@pytest.mark.parametrize(
    ("files", "counter", "moves", "expected"),
    [
        pytest.param(V1, "memory/memory.oom_control", True, "The kernel killed 1 process(es) of this container for memory", id="v1, killed for memory"),
        pytest.param(V2, "memory.events", True, "The kernel killed 1 process(es) of this container for memory", id="v2, killed for memory"),
        pytest.param(V1, "memory/memory.oom_control", False, "Ended by SIGKILL from outside", id="v1, killed by somebody"),
        pytest.param(V2, "memory.events", False, "Ended by SIGKILL from outside", id="v2, killed by somebody"),
        pytest.param(UNREADABLE, "", False, "Whether for memory cannot be seen here", id="no counter"),
    ],
)  # fmt: skip
def test_a_sigkill_is_told_by_the_counter_of_either_hierarchy(
    tmp_path: Path, files: dict[str, str], counter: str, moves: bool, expected: str
) -> None:
    """The counter stands at 3 from earlier kills; where the kernel kills, it moves to 4 meanwhile."""
    root, path = tmp_path / "root", tmp_path / "root" / "sys/fs/cgroup" / counter
    link_namespaces(root, own=("pid", "uts", "ipc", "cgroup"))
    write_tree(root, {name: text.replace("{count}", "3") for name, text in files.items()})
    moved = f"p = {str(path)!r}; t = open(p).read().replace('3', '4'); open(p, 'w').write(t)" if moves else "pass"  # fmt: skip
    words = (sys.executable, "-c", f"import os\n{moved}\nos.kill(os.getpid(), 9)")
    run = RunDir(tmp_path / "run")
    run.make()
    run.trainer_log.touch()
    plan = CommandPlan(name="x", made_at="", argv=words, cwd=str(tmp_path), environment={}, decisions=())
    supervisor = Supervisor(run, plan, os.environ, with_sampler=False, context=Context(root=root, environ={}))
    assert supervisor.supervise() == 137
    notes = [event for event, _ in read_events(supervisor.words.writer.path) if event.kind == "note"]
    text = fill(notes[0].data["text"]["msgid"], notes[0].data["text"].get("params", {}))
    assert expected in text
    assert ("16.0 GB" in text) == moves


RANK_KILLED = "  exitcode  : -9 (pid: 24111)\n  traceback : Signal 9 (SIGKILL) received by PID 24111\n"


@pytest.mark.parametrize(("after", "refuted"), [(3, True), (None, False)], ids=["counted", "nobody counts"])
def test_a_kill_of_before_the_start_explains_no_rank_that_is_killed_now(
    after: int | None, refuted: bool
) -> None:
    """The kernel log of the machine still names a process that it killed an hour ago."""
    old = KernelLog(lines=("Memory cgroup out of memory: Killed process 21644 (python) total-vm:900000kB",))
    snapshot = Snapshot(facts=Facts(kernel_log=ok(old)))
    assert "21644" in str([one.title for one in judge(snapshot).findings()]), "the machine does say it"
    notes = list(notes_of(Ended(1, after, after), RANK_KILLED, 0, snapshot))
    texts = [str(note.text) for note in notes]
    assert texts[0].startswith("The process was killed from outside")
    assert not any("21644" in text for text in texts)
    assert any(text.startswith("Not for memory of this container") for text in texts) == refuted
