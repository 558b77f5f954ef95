"""Patterns of CUDA libraries that are missing, mixed or fail, and of what is compiled against them."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.
    Pattern(
        id="ptx-unsupported",
        regex=r"PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion|Unsupported PTX version|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        meaning=t("Code was compiled to PTX by a newer toolkit than the driver can read."),
        advice=t(
            "Use a toolkit at or below the driver's CUDA for run-time compiled kernels (numba: install pynvjitlink or numba-cuda)."
        ),
        confirms=("ptx-jit-newer-than-driver",),
        hides=("cuda-error-late",),
    ),
    # ptxas fatal : Value 'sm_120' is not defined for option 'gpu-name'
    Pattern(
        id="ptxas-arch",
        regex=r"Value '(?P<arch>sm_\w+)' is not defined for option 'gpu-name'",
        meaning=t("The ptxas that Triton or nvcc uses is older than the card ({arch}).", arch="?"),
        advice=t("Install a newer torch with its own triton, or unset TRITON_PTXAS_PATH."),
        confirms=("gpu-arch-not-in-torch-build",),
    ),
    # OSError: libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn..., version libcudnn_ops_infer.so.8
    Pattern(
        id="cudnn-symbol",
        regex=r"libcudnn\S*: undefined symbol|Could not load library libcudnn\S*|libcudnn\S*: cannot open shared object file",
        meaning=t(
            "Parts of two cuDNN installations are mixed, or one is incomplete: the loader finds another copy before torch's own."
        ),
        advice=t("`unset LD_LIBRARY_PATH` for the training process; torch brings its own cuDNN."),
        confirms=("ld-library-path-shadows-bundled-cuda", "torch-install-broken"),
    ),
    # ImportError: .../libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12
    Pattern(
        id="nvjitlink-symbol",
        regex=r"undefined symbol: (?P<symbol>__nvJitLink\w+)",
        meaning=t(
            "An older libnvJitLink than torch's was found first ({symbol} is missing in it).", symbol="?"
        ),
        advice=t("Take the CUDA folder out of LD_LIBRARY_PATH for the training process."),
        confirms=("ld-library-path-shadows-bundled-cuda",),
    ),
    # ImportError: .../libtorch_cuda.so: undefined symbol: ncclCommRegister
    Pattern(
        id="nccl-symbol",
        regex=r"undefined symbol: (?P<symbol>nccl\w+)",
        meaning=t(
            "An older NCCL than torch was built with is loaded first ({symbol} is missing in it).", symbol="?"
        ),
        advice=t(
            "Remove the other NCCL from LD_LIBRARY_PATH, or reinstall the nvidia-nccl wheel that torch pins."
        ),
        confirms=("ld-library-path-shadows-bundled-cuda", "nvidia-wheel-version-drift"),
    ),
    # ImportError: .../libcublasLt.so.12: undefined symbol: cublasLtGetEnvironmentMode
    Pattern(
        id="cublas-symbol",
        regex=r"undefined symbol: cublas\w*|libcublas\S*: undefined symbol|symbol cublas\w+ version \S+ not defined",
        meaning=t(
            "Two cuBLAS versions are mixed: one from the wheels, one found through LD_LIBRARY_PATH or an older wheel."
        ),
        advice=t(
            "`unset LD_LIBRARY_PATH` for the training process; if it stays, reinstall the nvidia-cublas wheel that torch pins."
        ),
        confirms=("ld-library-path-shadows-bundled-cuda", "nvidia-wheel-version-drift"),
    ),
    # ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory
    Pattern(
        id="cuda-library-missing",
        regex=r"(?P<library>lib(?:cudart|cublas|cublasLt|cufft|curand|cusparse|cusolver|nvrtc|nccl(?!-net)|cupti)\S*\.so[.\d]*): cannot open shared object file",
        meaning=t(
            "A package was built for the CUDA that {library} belongs to, and that library is not there.",
            library="?",
        ),
        advice=t(
            "Install the package's build for your torch's CUDA; a system CUDA toolkit is rarely the right answer."
        ),
        confirms=(
            "flash-attn-torch-abi-mismatch",
            "onnxruntime-cuda-major-mismatch",
            "torch-install-broken",
            "bitsandbytes-missing-cuda-binary",
        ),
    ),
    # ImportError: libcuda.so.1: cannot open shared object file: No such file or directory
    Pattern(
        id="libcuda-missing",
        regex=r"libcuda\.so(?:\.1)?: cannot open shared object file",
        meaning=t("The driver's own library is not in this container: it was started without the GPU."),
        advice=t(
            "Start the container with the GPU (--gpus all, NVIDIA_VISIBLE_DEVICES=all); do not install a driver inside it."
        ),
        confirms=("no-gpu-visible",),
    ),
    # cuDNN version incompatibility: PyTorch was compiled against (9, 1, 0) but found runtime version (8, 9, 7)
    Pattern(
        id="cudnn-version",
        regex=r"cuDNN version incompatibility: PyTorch was compiled +against (?P<built>\([\d, ]+\)) but found runtime version (?P<found>\([\d, ]+\))",
        meaning=t("torch was built with cuDNN {built}, and {found} was loaded.", built="?", found="?"),
        advice=t("`unset LD_LIBRARY_PATH`, or take the folder with the other cuDNN out of it."),
        confirms=("ld-library-path-shadows-bundled-cuda", "nvidia-wheel-version-drift"),
    ),
    # RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED
    Pattern(
        id="cudnn-not-initialized",
        regex=r"CUDNN_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED\w*|SUBLIBRARY_VERSION_MISMATCH)",
        meaning=t(
            "cuDNN could not start: usually no memory is left on the card, else a mixed cuDNN installation."
        ),
        advice=t("Try half the batch first; if that changes nothing, `unset LD_LIBRARY_PATH`."),
        confirms=(
            "vram-held-by-process",
            "ld-library-path-shadows-bundled-cuda",
            "nvidia-wheel-version-drift",
        ),
    ),
    # RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`
    Pattern(
        id="cublas-not-initialized",
        regex=r"CUBLAS_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)",
        meaning=t(
            "cuBLAS could not start: most often the card's memory is full, or an index error earlier broke the CUDA context."
        ),
        advice=t("Look for an earlier device-side assert; else free memory on the card or halve the batch."),
        confirms=("vram-held-by-process", "label-out-of-range", "token-id-out-of-vocab"),
    ),
    # RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm(...)`
    Pattern(
        id="cublas-failed",
        regex=r"CUBLAS_STATUS_(?:INVALID_VALUE|EXECUTION_FAILED|NOT_SUPPORTED|ARCH_MISMATCH)",
        meaning=t(
            "A matrix product failed inside cuBLAS: shapes that do not fit (often a wrong index before it), or another cuBLAS than torch's was loaded."
        ),
        advice=t("Run the step on the CPU to see the true shape error; then `unset LD_LIBRARY_PATH`."),
        confirms=(
            "ld-library-path-shadows-bundled-cuda",
            "nvidia-wheel-version-drift",
            "token-id-out-of-vocab",
        ),
    ),
    # The detected CUDA version (11.7) mismatches the version that was used to compile PyTorch (12.1).   |   RuntimeError: ('The detected CUDA version (%s) mismatches the version that was used to compilePyTorch (%s).', '11.3', '12.8')
    Pattern(
        id="nvcc-mismatch",
        regex=r"detected CUDA version \((?:%s\) mismatches[^\n]*?')?(?P<nvcc>[\d.]+)(?:\) mismatches the version that was used to compile\s+PyTorch \(|', ')(?P<torch>[\d.]+)",
        meaning=t(
            "An extension is being compiled with nvcc {nvcc} for a torch of CUDA {torch}.",
            nvcc="?",
            torch="?",
        ),
        advice=t("Point CUDA_HOME at a toolkit of torch's CUDA major, or install a prebuilt wheel."),
        confirms=("nvcc-torch-cuda-mismatch",),
    ),
    # deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 11.8 does not match the version torch was compiled with 12.4, unable to compile cuda/cpp extensions
    Pattern(
        id="deepspeed-cuda",
        regex=r"Installed CUDA version (?P<nvcc>[\d.]+) does not match the version torch was compiled with (?P<torch>[\d.]+)|CUDAMismatchException",
        meaning=t(
            "DeepSpeed wants to compile an operator with nvcc {nvcc} for a torch of CUDA {torch}, and refuses.",
            nvcc="?",
            torch="?",
        ),
        advice=t(
            "Point CUDA_HOME at a toolkit of torch's CUDA version. `DS_SKIP_CUDA_CHECK=1` only skips the question; it is for another minor of the same major."
        ),
        confirms=("nvcc-torch-cuda-mismatch",),
    ),
)
