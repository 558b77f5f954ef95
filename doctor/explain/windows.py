"""Patterns of Windows: libraries that do not load, a page file that is too small, PowerShell's refusal of scripts."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # OSError: [WinError 126] 找不到指定的模块。 Error loading "D:\anaconda3\lib\site-packages\torch\lib\fbgemm.dll" or one of its dependencies.
    Pattern(
        id="fbgemm-dll",
        regex=r"Error loading \"[^\"\n]*fbgemm\.dll\"",
        meaning=t("torch's fbgemm.dll finds no libomp140.x86_64.dll: torch 2.4.0 for Windows needs it and does not bring it."),
        advice=t("`python -m pip install -U torch` (a release after 2.4.0, from the index of your CUDA); or Visual Studio's MSVC v143 build tools, which bring that file. Take no DLL from a download site."),
        hides=("torch-dll",),
    ),
    # OSError: [WinError 126] 找不到指定的模块。 Error loading "C:\Python310\lib\site-packages\torch\lib\shm.dll" or one of its dependencies.   |   OSError: [WinError 127] 找不到指定的程序。 Error loading "...\torch\lib\torch_python.dll"
    Pattern(
        id="torch-dll",
        regex=r"\[WinError (?:126|127|1114|182)\][^\n]*Error loading \"[^\"\n]*?(?P<file>[\w.-]+\.dll)\"",
        meaning=t("Windows could not load {file} of torch: the Visual C++ runtime is missing or old, or files of two installations are mixed.", file="?"),
        advice=t("Install Microsoft's Visual C++ Redistributable (x64, the newest) and start Windows anew; if it stays, uninstall torch until pip finds none and install it in a new environment."),
        confirms=("torch-install-broken",),
    ),
    # OSError: [WinError 1455] 页面文件太小，无法完成操作。 Error loading "...\torch\lib\cublas64_11.dll" or one of its dependencies.   |   OSError: [WinError 1455] The paging file is too small for this operation to complete.
    Pattern(
        id="page-file",
        regex=r"\[WinError 1455\]|页面文件太小|paging file is too small",
        meaning=t("Windows has no virtual memory left: each loader worker and each Python loads torch's large libraries and counts against the page file."),
        advice=t("Fewer workers (num_workers=0 or 2), or a larger page file: System, Advanced, Performance, Virtual memory, on a drive with room; then start Windows anew."),
    ),
    # 无法加载文件 C:\Users\li\Documents\WindowsPowerShell\profile.ps1，因为在此系统上禁止运行脚本。   |   File C:\venv\Scripts\Activate.ps1 cannot be loaded because running scripts is disabled on this system.
    Pattern(
        id="powershell-policy",
        regex=r"因为在此系统上禁止运行脚本|cannot be loaded because running scripts is disabled on this system",
        meaning=t("PowerShell runs no scripts on this computer, so that neither conda's profile nor a venv's Activate.ps1 takes effect."),
        advice=t("`Set-ExecutionPolicy -Scope CurrentUser RemoteSigned` once, then a new window; or cmd (the Anaconda Prompt), which needs none."),
    ),
)  # fmt: skip
