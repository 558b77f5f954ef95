"""Patterns of kernels that a card, a type or a build does not have: cuDNN's engines, attention, Triton, CUDA's refusals."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: GET was unable to find an engine to execute this computation   |   RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: No execution plans support the graph.
    Pattern(
        id="cudnn-no-engine",
        regex=r"(?:GET|FIND) was unable to find an engine to execute this computation|No execution plans support the graph|no valid convolution algorithms available",
        meaning=t("cuDNN found no way to carry out this operation: too little memory is left for its workspace, or it has none for this type, size and card."),
        advice=t("Half the batch first (and see who else holds the card: `doctor check`). If it stays: float32 for that layer, or torch.backends.cudnn.enabled = False once to see whether it is cuDNN; a cuDNN of another CUDA on LD_LIBRARY_PATH does it too."),
        confirms=("vram-held-by-process", "vram-mostly-used", "ld-library-path-shadows-bundled-cuda", "gpu-arch-not-in-torch-build"),
    ),
    # RuntimeError: No available kernel. Aborting execution.   |   RuntimeError: cutlassF: no kernel found to launch!
    Pattern(
        id="attention-no-kernel",
        regex=r"No available kernel\. Aborting execution|cutlassF: no kernel found to launch",
        meaning=t("torch's attention was told to use one backend only, and that one has no kernel for this card, type or head size."),
        advice=t("Do not force a backend (sdpa_kernel, sdp_kernel, enable_flash=True): torch chooses. On cards before Ampere float16 in place of bfloat16; attn_implementation='eager' always works."),
        confirms=("flash-attn-unsupported-gpu",),
    ),
    # RuntimeError: p.attn_bias_ptr is not correctly aligned
    Pattern(
        id="attention-alignment",
        regex=r"attn_bias_ptr is not correctly aligned|attn_bias is not correctly aligned",
        meaning=t("The attention kernel wants the length of the mask's rows to be a multiple of 8."),
        advice=t("pad_to_multiple_of=8 in the collator, or attn_implementation='eager'; newer torch pads by itself."),
    ),
    # AssertionError: libcuda.so cannot found!
    Pattern(
        id="triton-libcuda",
        regex=r"libcuda\.so cannot found",
        meaning=t("Triton asks the loader's list for libcuda.so, the driver's library, and does not find it there."),
        advice=t("`ldconfig` as root, or `export TRITON_LIBCUDA_PATH=FOLDER` with the folder that `find / -name 'libcuda.so*' 2>/dev/null` shows (WSL: /usr/lib/wsl/lib); without a card there is none."),
        confirms=("no-gpu-visible",),
        hides=("dynamo-failed",),
    ),
    # RuntimeError: Triton Error [CUDA]: device kernel image is invalid   |   LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32   |   python: /project/lib/Dialect/TritonGPU/Transforms/AccelerateMatmul.cpp:45: Assertion `false' failed.
    Pattern(
        id="triton-cannot",
        regex=r"Triton Error \[CUDA\]: (?P<what>[^\n]{3,80})|LLVM ERROR: (?P<what2>Cannot select[^\n]{0,80})|lib/(?:Dialect|Conversion|Target)/\S*Triton\S*:\d+: [^\n]{0,200}Assertion|UNREACHABLE executed at \S*[Tt]riton",
        meaning=t("Triton could not make or load a kernel for this card: the card is older than Triton supports (before Volta, and for much before Ampere), or Triton is older than the card."),
        advice=t("Without it: `TORCHDYNAMO_DISABLE=1`, attn_implementation='sdpa', and the package's own switch; or the newest torch with its own triton. `rm -rf ~/.triton/cache` once after a change of versions."),
        confirms=("gpu-arch-not-in-torch-build",),
        hides=("dynamo-failed", "aborted"),
    ),
    # RuntimeError: CUDA error: initialization error
    Pattern(
        id="cuda-initialization",
        regex=r"CUDA error: initialization error|cuda runtime error \(3\) ?:",
        meaning=t("CUDA cannot be used in this process: it was forked from one that had used CUDA already, as loader workers and multiprocessing do."),
        advice=t("Nothing on the card before the fork and in the data set (tensors stay on the CPU there); or mp.set_start_method('spawn') as the first line of main."),
        confirms=("cuda-init-fails",),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: operation not supported
    Pattern(
        id="cuda-not-supported",
        regex=r"CUDA error: operation not supported",
        meaning=t("This card or its virtualisation (vGPU, MIG, WSL, a shared container) does not offer a function that was asked for: virtual memory of the allocator, memory shared between processes, direct copies."),
        advice=t("Take expandable_segments out of the allocator variable (PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF), NCCL_CUMEM_ENABLE=0 and NCCL_P2P_DISABLE=1 for several cards; pin_memory=False in the loader."),
        confirms=("cuda-init-fails",),
        hides=("cuda-error-late",),
    ),
    # RuntimeError: CUDA error: invalid resource handle
    Pattern(
        id="invalid-resource-handle",
        regex=r"CUDA error: invalid resource handle|cudaErrorInvalidResourceHandle",
        meaning=t("A stream or event of one card (or process) was used on another: mostly a kernel that runs on cuda:0 while its tensors lie on another card."),
        advice=t("torch.cuda.set_device(tensor.device) around it (with torch.cuda.device(...):), CUDA_VISIBLE_DEVICES to the one card meant, or 'spawn' in place of fork."),
        hides=("cuda-error-late",),
    ),
    # Exception: cublasLt ran into an error!
    Pattern(
        id="bitsandbytes-cublaslt",
        regex=r"cublasLt ran into an error",
        meaning=t("bitsandbytes' 8-bit product failed in cuBLASLt: the card has no such kernels, its memory is full, or the binary belongs to another CUDA."),
        advice=t("`python -m pip install -U bitsandbytes`; 4 bits in place of 8 (load_in_4bit) asks less of the card; a smaller micro-batch."),
        confirms=("bitsandbytes-missing-cuda-binary", "vram-mostly-used"),
    ),
    # RuntimeError: value cannot be converted to type at::Half without overflow
    Pattern(
        id="half-overflow",
        regex=r"value cannot be converted to type (?:at|c10)::(?P<type>\w+) without overflow",
        meaning=t("A constant does not fit half precision, which ends at 65,504: typically -1e9 in an attention mask."),
        advice=t("torch.finfo(x.dtype).min in its place; in a library's code its newer version, or bf16."),
    ),
    # RuntimeError: "triu_tril_cuda_template" not implemented for 'BFloat16'
    Pattern(
        id="type-not-implemented",
        regex=r"\"(?P<op>\w+)\" not implemented for '(?P<type>\w+)'",
        meaning=t("torch has no form of {op} for the type {type} on this device.", op="?", type="?"),
        advice=t("Cast before it: labels .long(), pictures .float(); BFloat16 and Half: a newer torch has more of them, else float32 for that one operation."),
        general=True,
    ),
    # NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend.
    Pattern(
        id="operator-without-backend",
        regex=r"Could not run '(?P<op>[\w:.]+)' with arguments from the '(?P<backend>\w+)' backend",
        meaning=t("{op} is there, but not for {backend}: the package with it is a CPU build, or belongs to another torch.", op="?", backend="?"),
        advice=t("torchvision:: and torchaudio:: operators: install the build with your torch's CUDA from the same index, with --no-deps. aten:: operators: that operation has no form there; move the tensor or use another."),
        confirms=("torchvision-torch-mismatch", "torch-cpu-only-build"),
    ),
    # RuntimeError: Pin memory thread exited unexpectedly
    Pattern(
        id="pin-thread",
        regex=r"Pin memory thread exited unexpectedly",
        meaning=t("The loader's thread that copies batches into pinned memory ended: an earlier CUDA error, too little host memory to pin, or a batch of a kind that it cannot copy."),
        advice=t("Look for the error before it; pin_memory=False shows whether it is the pinning."),
        confirms=("memlock-too-small", "cgroup-memory-below-host"),
    ),
)  # fmt: skip
