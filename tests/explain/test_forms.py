"""However a text was pasted (colours, Windows line ends, stamps, HTML), the same is said of it; what only quotes an error is passed over."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from doctor.explain import explain
from doctor.explain.forms import only_quotes, plain
from doctor.explain.match import all_patterns, last_match
from tests.explain.test_patterns import raw_lines

FORMS: dict[str, Callable[[str], str]] = {
    "Windows line ends": lambda line: f"first\r\n{line}\r\nlast\r\n",
    "colours": lambda line: f"\x1b[1mfirst\x1b[0m\n\x1b[0;31m{line}\x1b[0m\n",
    "colours whose escape was lost": lambda line: f"[0;31m{line}[0m\n",
    "a platform's stamps": lambda line: (
        f"2025-07-03T14:20:51.565829352Z first\n2025-07-03T14:20:51.565949390Z {line}\n"
    ),
    "docker compose": lambda line: f"vllm-1  | first\nvllm-1  | {line}\n",
    "a notebook's HTML": lambda line: f"<pre>first\n<span class='ansi-red-fg'>{line}</span></pre>\n",
    "a thousand lines": lambda line: "step 12 ok\n" * 500 + line + "\n" + "step 13 ok\n" * 500,
}


@pytest.mark.parametrize("form", FORMS)
def test_in_every_form_each_kind_is_found(form: str) -> None:
    regex_of = {item.id: item.regex for item in all_patterns()}
    missed = [
        (kind, piece)
        for kind, line in raw_lines()
        for piece in line.split("   |   ")
        if not last_match(regex_of[kind], plain(FORMS[form](piece)))
    ]
    assert missed == []


@pytest.mark.parametrize("form", FORMS)
def test_lines_stay_the_same_in_number(form: str) -> None:
    text = FORMS[form]("OSError: [Errno 122] Disk quota exceeded")
    assert plain(text).count("\n") == text.count("\n")


def test_a_coloured_message_in_two_parts_is_read() -> None:
    (known,) = explain("\x1b[0;31mOSError\x1b[0m: [Errno 122] Disk quota exceeded\r\n").known
    assert (known.match.id, known.match.line) == ("quota", "OSError: [Errno 122] Disk quota exceeded")


@pytest.mark.parametrize(
    "line",
    [
        "except torch.cuda.OutOfMemoryError:",
        '    if "CUDA out of memory" in str(error):',
        '    print("CUDA out of memory, halving the batch")',
        '    logger.warning("CUDA out of memory")',
        '  --retry-on-oom   halve the batch after "CUDA out of memory" and go on',
        "- Fixed: `CUDA out of memory` is retried once",
        "# CUDA out of memory happens here",
    ],
)
def test_a_line_that_only_quotes_an_error_is_passed_over(line: str) -> None:
    assert only_quotes(f"first\n{line}\n", 12)
    assert explain(f"first\n{line}\n").known == ()


@pytest.mark.parametrize(
    "line",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory",
        "RuntimeError: CUDA out of memory.",
        "  File 'a.py': CUDA out of memory",
        "if you see this, CUDA out of memory was met",
        "- CUDA out of memory",
    ],
)
def test_a_line_that_says_an_error_is_no_quotation(line: str) -> None:
    assert not only_quotes(f"first\n{line}\n", 12)
    assert [item.match.id for item in explain(f"first\n{line}\n").known] == ["cuda-oom-unsaid"]


def test_what_only_says_that_something_failed_stands_behind_what_says_why() -> None:
    text = "nvcc fatal   : Unsupported gpu architecture 'compute_120'\nEngineCore failed to start\nChildFailedError:\n"
    assert [item.match.id for item in explain(text).known] == ["nvcc-arch", "child-failed", "vllm-engine"]


def test_a_general_kind_is_left_out_where_a_special_one_has_its_lines() -> None:
    frame = 'File "/venv/lib/python3.11/site-packages/transformers/trainer.py", line 9, in f\n    g(x=1)\n'
    special = "TypeError: MyTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'"
    general = "TypeError: g() got an unexpected keyword argument 'x'"
    assert [item.match.id for item in explain(frame + special).known] == ["compute-loss-argument"]
    assert [item.match.id for item in explain(frame + general).known] == ["library-argument"]


def test_a_frame_of_ones_own_after_the_librarys_is_no_librarys_error() -> None:
    library = 'File "/venv/lib/python3.11/site-packages/transformers/trainer.py", line 9, in f\n    g()\n'
    own = 'File "/workspace/train.py", line 3, in g\n    h(x=1)\n'
    known = explain(f"{library}{own}TypeError: h() got an unexpected keyword argument 'x'\n").known
    assert "library-argument" not in [item.match.id for item in known]


@pytest.mark.parametrize(
    "text",
    [
        "File \"/workspace/train.py\", line 3, in g\n    model.foo\nFile \"/venv/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1940, in __getattr__\n    raise AttributeError(\nAttributeError: 'LlamaForCausalLM' object has no attribute 'foo'",
        "File \"/venv/lib/python3.11/site-packages/torch/utils/_contextlib.py\", line 116, in decorate_context\n    return func(*args, **kwargs)\nTypeError: generate() got an unexpected keyword argument 'foo'",
    ],
    ids=["an attribute that one's own code asks for", "an argument that is only handed on"],
)
def test_what_a_library_only_passes_on_is_not_called_its_own(text: str) -> None:
    assert not {item.match.id for item in explain(text).known} & {"library-object", "library-argument"}


def test_a_library_that_asks_through_getattr_is_named() -> None:
    asking = 'File "/venv/lib/python3.11/site-packages/unsloth/trainer.py", line 4, in f\n    model.foo\n'
    answering = 'File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1940, in __getattr__\n    raise AttributeError(\n'
    (known,) = explain(f"{asking}{answering}AttributeError: 'LlamaModel' object has no attribute 'foo'").known
    assert (known.match.id, known.match.extracted["library"]) == ("library-object", "unsloth")
