"""Patterns of notebooks: kernels that die or are another Python, servers that refuse."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # The kernel for work/finetune.ipynb appears to have died. It will restart automatically.   |   AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports   |   The Kernel crashed while executing code in the current cell or a previous cell.   |   train.ipynb 的内核似乎挂掉了，它很快将自动重启。
    Pattern(
        id="kernel-died",
        regex=r"appears to have died|内核似乎挂掉了|KernelRestarter: restarting kernel|Kernel crashed while executing code|Canceled future for execute_request message before replies were done",
        meaning=t("The notebook's kernel process ended without a Python error: killed because the host memory (not the card's) ran out, or a crash in native code."),
        advice=t("`doctor check` reads whether the kernel log or the container's counter holds a kill. Run the cell as a script (`jupyter nbconvert --to script`, `python FILE`): there the reason is printed. Variables are lost."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host", "torch-install-broken"),
    ),
    # ImportError: IProgress not found. Please update jupyter and ipywidgets.
    Pattern(
        id="ipywidgets",
        regex=r"IProgress not found",
        meaning=t("tqdm's notebook bar needs ipywidgets, which the notebook's Python does not have."),
        advice=t("`%pip install -U ipywidgets` and reload the page; or `from tqdm import tqdm` for the plain bar."),
    ),
    # jupyter_client.kernelspec.NoSuchKernel: No such kernel named llama
    Pattern(
        id="no-such-kernel",
        regex=r"No such kernel named (?P<name>\S+)",
        meaning=t("The notebook asks for a kernel {name} that this server does not have.", name="?"),
        advice=t("In the environment meant: `python -m pip install ipykernel && python -m ipykernel install --user --name {name}`; or choose another kernel in the menu.", name="NAME"),
    ),
    # Running as root is not recommended. Use --allow-root to bypass.
    Pattern(
        id="jupyter-root",
        regex=r"Running as root is not recommended\. Use --allow-root",
        meaning=t("Jupyter does not start as root unless told so."),
        advice=t("`jupyter lab --allow-root --ip 127.0.0.1 --no-browser --port 8888`, and reach it through `ssh -L 8888:localhost:8888`; keep its token."),
    ),
    # RuntimeError: asyncio.run() cannot be called from a running event loop
    Pattern(
        id="running-event-loop",
        regex=r"asyncio\.run\(\) cannot be called from a running event loop|This event loop is already running",
        meaning=t("A notebook runs an event loop already, and the code starts a second one."),
        advice=t("`await main()` in the cell in place of asyncio.run(main()); for a library that does it: `%pip install nest_asyncio`, then nest_asyncio.apply()."),
    ),
    # ValueError: You have already initialized CUDA ... To launch a training function inside a notebook, CUDA must not be initialized
    Pattern(
        id="notebook-launcher",
        regex=r"To launch a (?:multi-GPU )?training (?:function )?(?:from your|inside a) notebook|already been initialized in your (?:notebook|main process)|CUDA has been initialized before the `notebook_launcher` could create a forked subprocess",
        meaning=t("notebook_launcher forks the kernel, and something has used CUDA (or made an Accelerator) in it before."),
        advice=t("Restart the kernel, and create model, Accelerator and everything on the card only inside the function; or write a script and start it with torchrun."),
    ),
    # IOPub data rate exceeded.
    Pattern(
        id="iopub-rate",
        regex=r"IOPub (?:data|message) rate exceeded",
        meaning=t("The cell prints more than the notebook passes on; the code goes on, only its output is cut."),
        advice=t("Print less (disable_tqdm=True, larger logging_steps), or write to a file."),
    ),
)  # fmt: skip
