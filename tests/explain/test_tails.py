"""Ends of logs as people paste them into issues and posts: what is said of each, and nothing besides."""

from __future__ import annotations

import re

import pytest

from doctor.explain import explain
from doctor.explain.match import all_patterns, matches
from tests.explain.test_patterns import raw_lines

ELASTIC = """[rank0]: torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : {code} (pid: 69053)
  error_file: <N/A>
"""

# (what is said first, the tail)
TAILS = (
    ("cuda-oom-unsaid", "RuntimeError: CUDA out of memory"),
    ("cuda-oom-unsaid", "torch.cuda.OutOfMemoryError"),
    ("cuda-oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.65 GiB"),
    ("no-kernel-image", "RuntimeError: CUDA error: no kernel image is available"),
    ("segmentation-fault", "Segmentation fault (core dumped)"),
    ("segmentation-fault", "run.sh: line 3:  4242 Segmentation fault      (core dumped) python train.py\nSegmentation fault (core dumped)"),
    ("segmentation-fault", ELASTIC.format(code=-11)),
    # hpcaitech/Open-Sora issue 749
    ("floating-point-exception", "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -8) local_rank: 0 (pid: 69053) of binary: /root/miniconda3/bin/python"),
    ("floating-point-exception", "Floating point exception (core dumped)"),
    ("illegal-instruction", "Illegal instruction (core dumped)"),
    ("aborted", "terminate called after throwing an instance of 'c10::Error'\nAborted (core dumped)"),
    ("hang-up", "29%|██▊       | 1428/5000 [6:15:51<15:39:45, 15.79s/it]WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\nWARNING:torch.distributed.elastic.multiprocessing.api:Sending process 44927 closing signal SIGHUP\ntorch.distributed.elastic.multiprocessing.api.SignalException: Process 44853 got signal: 1"),
    ("terminated", "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15"),
    # vllm-project/vllm issue 8893
    ("cuda-in-fork", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method"),
    ("main-guard-missing", "RuntimeError: \n        An attempt has been made to start a new process before the\n        current process has finished its bootstrapping phase."),
    ("cannot-pickle", "AttributeError: Can't pickle local object 'main.<locals>.collate'"),
    ("cannot-pickle", "TypeError: cannot pickle '_io.TextIOWrapper' object"),
    ("loader-timeout", "RuntimeError: DataLoader timed out after 60 seconds"),
    # deepspeedai/DeepSpeed issues 885, 1687
    ("extension-build", "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1."),
    ("extension-build", "RuntimeError: Error building extension 'fused_adam'"),
    ("extension-build", "RuntimeError: Ninja is required to load C++ extensions"),
    ("cuda-home", "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root."),
    ("cuda-home", "bash: nvcc: command not found"),
    ("wheel-build", "  ERROR: Failed building wheel for flash-attn\nFailed to build flash-attn"),
    ("wheel-build", "× Getting requirements to build wheel did not run successfully.\n│ exit code: 1"),
    ("opencv-libraries", "ImportError: libGL.so.1: cannot open shared object file: No such file or directory"),
    ("no-display", "qt.qpa.xcb: could not connect to display"),
    ("protobuf", "TypeError: Descriptors cannot be created directly."),
    ("numpy-alias", "AttributeError: module 'numpy' has no attribute 'float'.\n`np.float` was a deprecated alias for the builtin `float`."),
    ("hash-mismatch", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."),
    ("index-timeout", "pip._vendor.urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='files.example.org', port=443): Read timed out."),
    ("certificate", "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1007)"),
    ("socks-proxy", "ValueError: Unknown scheme for proxy URL URL('socks://127.0.0.1:7890/')"),
    ("conda-init", "CondaError: Run 'conda init' before 'conda activate'"),
    # kyegomez/NeoSapiens issue 3
    ("gated-model", "huggingface_hub.utils._errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-66)\n\nCannot access gated repo for url https://huggingface.co/meta-llama/Llama-2-7b/resolve/main/config.json.\nRepo model meta-llama/Llama-2-7b is gated. You must be authenticated to access it."),
    ("model-not-found", "OSError: bert-base-chines is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"),
    ("model-type-unknown", "ValueError: The checkpoint you are trying to load has model type `qwen3` but Transformers does not recognize this architecture."),
    ("tokenizer-class-unknown", "ValueError: Tokenizer class LLaMATokenizer does not exist or is not currently imported."),
    # huggingface/transformers issue 34733
    ("model-files-missing", "OSError: lightonai/MonoQwen2-VL-v0.1 does not appear to have a file named pytorch_model.bin, model.safetensors, tf_model.h5, model.ckpt or flax_model.msgpack."),
    ("download-cut", "OSError: Consistency check failed: file should be of size 4227858712 but has size 2290365199 (model-00045-of-00061.safetensors)."),
    ("wandb-login", "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])"),
    # AutoGPTQ/AutoGPTQ issue 667
    ("lora-targets", "ValueError: Target modules [] not found in the base model. Please check the target modules and try again."),
    ("bf16-unsupported", "ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0"),
    ("flash-attn-type", "RuntimeError: FlashAttention only support fp16 and bf16 data type"),
    # QwenLM/Qwen3 issue 12
    ("kv-cache", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."),
    ("kv-cache", "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (24480)."),
    ("vllm-memory-taken", "ValueError: Free memory on device (3.27/15.98 GiB) on startup is less than desired GPU memory utilization (0.9, 14.39 GiB)."),
    ("matmul-shapes", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x2)"),
    ("collate-sizes", "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at entry 1"),
    ("tokenizer-sizes", "ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' 'truncation=True' to have batched tensors with the same length."),
    ("batch-of-one", "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 512])"),
    ("channels", "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 224, 224] to have 3 channels, but got 1 channels instead"),
    ("loss-not-scalar", "RuntimeError: grad can be implicitly created only for scalar outputs"),
    ("leaf-in-place", "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."),
    ("loss-scale-at-minimum", "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."),
    ("devices-busy", "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect."),
    ("gpu-too-old", "    Found GPU0 Tesla K40m which is of cuda capability 3.5.\n    PyTorch no longer supports this GPU because it is too old.\n    The minimum cuda capability supported by this library is 3.7."),
    ("nvml-assert", 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":830, please report a bug to PyTorch.'),
    ("duplicate-gpu", "ubuntu1583:1585 [0] init.cc:738 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000\nncclInvalidUsage: This usually reflects invalid usage of NCCL library."),
    ("no-process-group", "ValueError: Default process group has not been initialized, please make sure to call init_process_group."),
    ("illegal-memory-access", "RuntimeError: CUDA error: misaligned address"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "tail"), TAILS, ids=[f"{kind}-{index}" for index, (kind, _) in enumerate(TAILS)]
)
def test_of_a_pasted_tail_the_cause_is_said_and_nothing_besides(expected: str, tail: str) -> None:
    assert [item.id for item in matches(f"Traceback (most recent call last):\n{tail}\n")] == [expected]


@pytest.mark.parametrize(
    ("identifier", "piece"),
    [(kind, piece) for kind, line in raw_lines() for piece in line.split("   |   ")],
)
def test_each_of_the_raw_lines_above_a_pattern_is_one_it_knows(identifier: str, piece: str) -> None:
    pattern = next(item for item in all_patterns() if item.id == identifier)
    assert re.search(pattern.regex, piece, re.MULTILINE), piece


@pytest.mark.parametrize(
    "text",
    [
        "Aborted!",
        "the chapter on Segmentation fault handling, see below",
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://example.org/a",
        "pickle.PicklingError: args[0] from __newobj__ args has the wrong class",
        "RuntimeError: shape '[8, 3]' is invalid for input of size 25",
        "OSError: config.yaml is not a folder",
        "subprocess.CalledProcessError: Command '['git', 'pull']' returned non-zero exit status 1.",
        "process finished with exit code 15 and 1 warning",
        "AttributeError: module 'numpy' has no attribute 'arrange'",
        "ImportError: libfoo.so.3: cannot open shared object file: No such file or directory",
        "signal: the terminated string of length 8",
    ],
)
def test_a_text_that_only_resembles_one_stays_unknown(text: str) -> None:
    assert matches(text) == []


def test_without_a_machine_nothing_is_said_to_have_been_looked_at() -> None:
    (known,) = explain("RuntimeError: CUDA out of memory").known
    assert "vram-held-by-process" in known.untold
    assert (known.open, known.refuted, known.confirmed) == ((), (), ())
