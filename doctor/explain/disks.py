"""Patterns of disks: full, over a quota, read-only, or a storage that no longer answers."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # OSError: [Errno 28] No space left on device   |   RuntimeError: [enforce fail at inline_container.cc:626] . unexpected pos 9985024 vs 9984920   |   cp: 写入 'model.safetensors' 时出错: 设备上没有空间
    Pattern(
        id="disk-full",
        regex=r"No space left on device|: no space left on device|\[Errno 28\]|os error 28\b|设备上没有空间|\[WinError 112\]|PytorchStreamWriter failed writing file|enforce fail at inline_container\.cc:\d+\] \. unexpected pos|basic_ios::clear: iostream error",
        meaning=t("A disk is full, or out of inodes. With 'torch_' or 'shm' in the path it is /dev/shm."),
        advice=t("`df -h; df -i` show which; move caches and checkpoints to the data disk."),
        confirms=(
            "hf-cache-on-small-disk",
            "checkpoint-budget-exceeds-disk",
            "inode-exhausted",
            "disk-nearly-full",
            "shm-too-small",
        ),
    ),
    # OSError: [Errno 122] Disk quota exceeded
    Pattern(
        id="quota",
        regex=r"Disk quota exceeded|\[Errno 122\]|os error 122\b|超出磁盘限额",
        meaning=t("Your quota on that file system is used up, even where df shows free space."),
        advice=t(
            "Delete old checkpoints there, or write elsewhere; `quota -s` or the platform's panel shows the quota."
        ),
        confirms=("quota-exceeded-on-target",),
    ),
    # OSError: [Errno 30] Read-only file system
    Pattern(
        id="read-only",
        regex=r"Read-only file system|只读文件系统",
        meaning=t("The target lies on a file system that cannot be written."),
        advice=t("Write to another folder; a disk that turned read-only by itself is failing."),
    ),
    # OSError: [Errno 5] Input/output error: '/root/autodl-fs/data/train-00003.parquet'   |   cp: 读取 'a.bin' 时出错: 输入/输出错误
    Pattern(
        id="disk-answers-wrongly",
        regex=r"\[Errno 5\] Input/output error|: Input/output error$|输入/输出错误",
        meaning=t(
            "A disk or a shared storage did not carry out a read or a write: a network disk that lost its server, or a failing disk."
        ),
        advice=t(
            "`dd if=FILE of=/dev/null bs=1M` on that file, and `dmesg | tail`. A shared storage: work from a copy on the local disk (AutoDL: /root/autodl-tmp); a local disk: save what is there and take another machine."
        ),
    ),
    # OSError: [Errno 116] Stale file handle   |   OSError: [Errno 107] Transport endpoint is not connected: '/root/autodl-fs'
    Pattern(
        id="share-gone",
        regex=r"\[Errno 116\]|Stale (?:NFS )?file handle|\[Errno 107\] Transport endpoint is not connected",
        meaning=t(
            "The file or the whole network share behind this path was replaced or cut off while it was open."
        ),
        advice=t(
            "Leave the folder and enter it again (`cd / && cd -`), then start the run anew; where `ls` of the share fails too, it must be mounted again: restart the instance. Data that many processes read belong on the local disk."
        ),
    ),
)
