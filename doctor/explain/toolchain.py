"""Patterns of compilers and system libraries: what nvcc, gcc and the loader miss or refuse."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # nvcc fatal   : Unsupported gpu architecture 'compute_120'
    Pattern(
        id="nvcc-arch",
        regex=r"nvcc fatal\s*: Unsupported gpu architecture '(?P<arch>compute_\w+)'",
        meaning=t("This nvcc does not know {arch}: it is older than the card (compute_120 needs CUDA 12.8, compute_90 11.8, compute_89 11.8), or so new that it dropped the card.", arch="?"),
        advice=t("A toolkit that knows the card, on CUDA_HOME; or TORCH_CUDA_ARCH_LIST with only what this nvcc knows; or the package's ready wheel for your torch."),
        confirms=("nvcc-torch-cuda-mismatch",),
        hides=("extension-build", "wheel-build"),
    ),
    # #error -- unsupported GNU version! gcc versions later than 12 are not supported!
    Pattern(
        id="gcc-too-new",
        regex=r"unsupported GNU version! gcc versions later than (?P<gcc>\d+) are not supported",
        meaning=t("nvcc works with gcc up to {gcc}, and the system's is newer.", gcc="?"),
        advice=t("`apt-get install -y gcc-{gcc} g++-{gcc}`, then `export CC=gcc-{gcc} CXX=g++-{gcc} NVCC_PREPEND_FLAGS='-ccbin g++-{gcc}'`; a newer toolkit knows newer compilers.", gcc="12"),
        hides=("extension-build", "wheel-build"),
    ),
    # error: #error You need C++17 to compile PyTorch   |   error: #error "You need a C++17 compatible compiler"   |   You're trying to build PyTorch with a too old version of GCC. We need GCC 9 or later.
    Pattern(
        id="gcc-too-old",
        regex=r"#error \"?You need (?:a )?C\+\+17|with a too old version of GCC|unrecognized command[ -]line option '?-std=c\+\+(?:17|20)",
        meaning=t("The compiler is older than torch's headers need (C++17: gcc 9 or newer), or the extension still asks for C++14."),
        advice=t("`conda install -y -c conda-forge gxx_linux-64=11`, or apt's g++-11 with `export CC=gcc-11 CXX=g++-11`; an old extension: its newer release."),
        hides=("extension-build", "wheel-build"),
    ),
    # CUDAContextLight.h:7:10: fatal error: cusparse.h: No such file or directory   |   fatal error: cuda_runtime.h: No such file or directory
    Pattern(
        id="cuda-headers",
        regex=r"fatal error: (?P<header>cu(?:sparse|blas|blas_v2|blasLt|solver\w*|rand\w*|fft|dnn|da|da_runtime\w*|da_fp16|da_bf16)|nvtx3?/\w+|thrust/\S+|cub/\S+)\.(?:h|cuh|hpp): No such file",
        meaning=t("A CUDA extension is compiled, and the toolkit here has no {header}.h: it was installed without its development files.", header="?"),
        advice=t("An image with the whole toolkit (-devel), or `apt-get install -y cuda-libraries-dev-12-X` of its version (conda: cuda-libraries-dev); or the package's ready wheel."),
        confirms=("nvcc-torch-cuda-mismatch",),
        hides=("extension-build", "wheel-build"),
    ),
    # fatal error: libaio.h: No such file or directory   |   fatal error: mpi.h: No such file or directory
    Pattern(
        id="system-headers",
        regex=r"fatal error: (?P<header>(?!Python\.h|cu)[\w/.-]+\.h): No such file",
        meaning=t("Something is compiled here and the system has no {header}.", header="?"),
        advice=t("`apt-get update && apt-get install -y build-essential` and the -dev package of that header (libaio.h: libaio-dev, mpi.h: libopenmpi-dev, sndfile.h: libsndfile1-dev, portaudio.h: portaudio19-dev, ffi.h: libffi-dev); or a version with a ready wheel."),
        hides=("wheel-build", "extension-build"),
        general=True,
    ),
    # /usr/bin/ld: cannot find -lcudart: No such file or directory   |   /usr/bin/ld: cannot find -lcuda
    Pattern(
        id="linker-cuda",
        regex=r"ld: cannot find -l(?P<library>cuda|cudart|cublas|cudnn|nvrtc|curand|aio)\b",
        meaning=t("The linker does not find lib{library}.", library="?"),
        advice=t("-lcuda is the driver's: `export LIBRARY_PATH=/usr/local/cuda/lib64/stubs:$LIBRARY_PATH`; cudart and the others lie in the toolkit's lib64; aio is apt's libaio-dev."),
        hides=("wheel-build", "extension-build"),
    ),
    # ImportError: .../deform_conv_cuda.cpython-36m-x86_64-linux-gnu.so: undefined symbol: __cudaPopCallConfiguration
    Pattern(
        id="cuda-runtime-symbol",
        regex=r"undefined symbol: (?P<symbol>__cuda\w+)",
        meaning=t("The extension was compiled by a newer nvcc than the CUDA runtime that torch brings ({symbol} is missing in it).", symbol="?"),
        advice=t("Compile it again with CUDA_HOME at a toolkit of torch's own CUDA (`python -c 'import torch; print(torch.version.cuda)'`), after removing its build folder."),
        confirms=("nvcc-torch-cuda-mismatch", "extension-torch-abi-mismatch"),
    ),
    # ImportError: cannot import name 'roi_align_cuda' from 'mmdet.ops.roi_align'   |   ModuleNotFoundError: No module named 'selective_scan_cuda'   |   ModuleNotFoundError: No module named 'mmcv._ext'
    Pattern(
        id="extension-not-built",
        regex=r"cannot import name '(?P<name>_C|_ext|\w+_(?:cuda|cuda_ext|cpp|ext))' from|No module named '(?P<name2>(?:\w+\.)*(?:_C|_ext|\w+_cuda|\w+_cuda_ext))'",
        meaning=t("{name}{name2} is the compiled part of a package, and it was never compiled here (or not for this Python).", name="", name2=""),
        advice=t("In the package's own folder `python -m pip install -e . --no-build-isolation -v` with nvcc of torch's CUDA and gcc at hand, and read whether the extension was built; or its ready wheel for your torch and Python. Do not start Python inside the source folder of an installed package."),
        confirms=("nvcc-torch-cuda-mismatch", "extension-torch-abi-mismatch"),
        hides=("module-not-found", "library-import-name", "own-file-shadows"),
    ),
    # THCudaCheck FAIL file=mmdet/ops/roi_align/src/roi_align_kernel.cu line=139 error=98 :
    Pattern(
        id="old-extension-check",
        regex=r"THCudaCheck FAIL file=(?P<file>\S+) line=\d+ error=(?P<code>\d+)",
        meaning=t("A CUDA call in {file} failed with number {code} (98, 48 and 209: the extension was compiled for another card; 2: memory; 59: an index out of range).", file="?", code="?"),
        advice=t("98, 48, 209: compile the extension again on this machine with TORCH_CUDA_ARCH_LIST of this card. Else CUDA_LAUNCH_BLOCKING=1 once, for the true line."),
        confirms=("gpu-arch-not-in-torch-build",),
    ),
    # nvcc error   : 'cicc' died due to signal 9 (Kill signal)   |   g++: fatal error: Killed signal terminated program cc1plus
    Pattern(
        id="compiler-killed",
        regex=r"'(?P<program>cicc|cudafe\+\+|ptxas)' died due to signal|Killed signal terminated program (?P<program2>cc1plus|cc1|as)",
        meaning=t("The compiler itself was killed: each of the parallel compilations takes gigabytes, and memory ran out."),
        advice=t("`MAX_JOBS=2 python -m pip install ... --no-build-isolation` (flash-attn takes about 5 GB a job); a ready wheel needs none of it."),
        confirms=("process-killed-for-memory", "cgroup-memory-below-host"),
        hides=("extension-build", "wheel-build", "exit-137"),
    ),
    # sh: 1: cmake: not found   |   CMake must be installed to build the following extensions   |   FileNotFoundError: [Errno 2] No such file or directory: 'cmake'
    Pattern(
        id="no-cmake",
        regex=r"\bcmake: (?:command )?not found|CMake must be installed to build|No such file or directory: 'cmake'|Problem with the CMake installation",
        meaning=t("Something is built with CMake, which is not here."),
        advice=t("`python -m pip install cmake ninja` (or `apt-get install -y cmake build-essential`)."),
        hides=("wheel-build", "command-not-found"),
    ),
    # OSError: sndfile library not found using ctypes.util.find_library   |   libsndfile.so.1: cannot open shared object file   |   OSError: libgomp.so.1: cannot open shared object file
    Pattern(
        id="system-library",
        regex=r"(?P<library>lib(?:sndfile|sox|gomp|aio|ibverbs|numa|EGL|OpenGL|cairo|magic|portaudio|ffi|mpi|tbb|xml2|crypt|ssl|avutil|avcodec|avformat|swresample|jpeg|webp|openblas|gfortran|lapack|protobuf|tcmalloc)\S{0,30}\.so[.\d]*): cannot open shared object file|sndfile library not found|Couldn't find ffmpeg or avconv|No such file or directory: 'ffmpeg'",
        meaning=t("A system library or program is missing in this image: {library}.", library="libsndfile or ffmpeg"),
        advice=t("`apt-get update && apt-get install -y PACKAGE`: libsndfile1, ffmpeg (libav*, libsw*), libgomp1, libaio1, libibverbs1, libnuma1, libegl1, libopenmpi3, libopenblas0, libgfortran5. libssl.so.1.1 and libffi.so.7 belong to an older system: conda has them."),
    ),
    # ImportError: libpython3.10.so.1.0: cannot open shared object file: No such file or directory
    Pattern(
        id="libpython",
        regex=r"libpython(?P<python>3\.\d+)\S*: cannot open shared object file",
        meaning=t("The shared library of Python {python} is not found: a conda or pyenv Python keeps it where the loader does not look.", python="?"),
        advice=t("`export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH` for that command, or apt's libpython of that version."),
    ),
    # Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}
    Pattern(
        id="cudnn-not-loaded",
        regex=r"Unable to load any of \{libcudnn\w*|Cannot load symbol cudnn\w+",
        meaning=t("A program looks for cuDNN on the loader's path and finds none of its version; it does not know the one inside torch's wheel (faster-whisper and CTranslate2 do so)."),
        advice=t("`export LD_LIBRARY_PATH=$(python -c 'import nvidia.cudnn as c; print(list(c.__path__)[0])')/lib:$LD_LIBRARY_PATH` for that program; CTranslate2 4.5 and newer wants cuDNN 9, older ones cuDNN 8."),
        confirms=("ld-library-path-shadows-bundled-cuda",),
        hides=("aborted",),
    ),
    # triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376.
    Pattern(
        id="triton-resources",
        regex=r"out of resources?: (?P<what>shared memory|registers|threads|tensor memory), Required: (?P<required>\d+), Hardware limit: (?P<limit>\d+)",
        cleared_by=r"Ignoring this choice",
        meaning=t("A Triton kernel was made for a larger card: it wants {required} bytes of on-chip memory and this one has {limit} (RTX 30 and 40 have 101,376, A100 166,912, H100 232,448). The card's large memory plays no part.", required="?", limit="?"),
        advice=t("A newer version of the package with the kernel (it chooses by card), smaller block sizes or num_stages where it lets you, a smaller head dimension; or run without it (attn_implementation='sdpa', TORCHDYNAMO_DISABLE=1)."),
        hides=("dynamo-failed",),
    ),
    # ImportError: DLL load failed while importing _imaging: The specified module could not be found.
    Pattern(
        id="dll-load",
        regex=r"DLL load failed while importing (?P<name>\w+)",
        meaning=t("Windows does not find a library that the compiled part {name} of a package needs, or it was built for another Python.", name="?"),
        advice=t("`python -m pip install --force-reinstall --no-cache-dir PACKAGE` (_imaging: pillow, cv2: opencv-python, _C and fbgemm: torch), and Microsoft's Visual C++ redistributable once."),
        confirms=("torch-install-broken",),
        general=True,
    ),
    # CUDA driver initialization failed, you might not have a CUDA gpu.
    Pattern(
        id="cuda-init-failed",
        regex=r"CUDA driver initialization failed, you might not have a CUDA gpu",
        meaning=t("CUDA could not start in this process (error 3): the driver or the card no longer answers, or the process was forked after CUDA had been used."),
        advice=t("`nvidia-smi` in another terminal: if it fails or hangs, restart the instance. If it works, start worker processes with 'spawn' and use CUDA only inside them."),
        confirms=("cuda-init-fails", "nvml-lost-in-container", "gpu-hardware-fault", "no-gpu-visible"),
    ),
)  # fmt: skip
