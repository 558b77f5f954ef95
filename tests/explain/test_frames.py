"""Of an error that is not known it is said where it was raised, and which line of one's own led there."""

from __future__ import annotations

import pytest

from doctor.explain import explain
from doctor.explain.frames import Raised, raised_in

HEAD = "Traceback (most recent call last):\n"
OWN = '  File "/workspace/train.py", line 45, in main\n    trainer.train()\n'
LIBRARY = '  File "/venv/lib/python3.11/site-packages/transformers/trainer.py", line 3579, in training_step\n    x()\n'
PYTHON = '  File "/usr/lib/python3.11/json/decoder.py", line 355, in raw_decode\n    raise x\n'
START = '  File "/usr/local/bin/accelerate", line 8, in <module>\n    sys.exit(main())\n'
RICH = (
    "│ /workspace/starchat/train.py:353 in <module>                          │\n│   350                 │\n"
)
IPYTHON = (
    "Cell In[12], line 1\n----> 1 model.go()\n\n"
    "File ~/venv/lib/python3.11/site-packages/peft/peft_model.py:581, in PeftModel.go(self)\n--> 581 self.x\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + OWN + "ValueError: 7", Raised(place="/workspace/train.py:45")),
        (
            HEAD + START + OWN + LIBRARY + "ValueError: 7",
            Raised(place="transformers/trainer.py:3579", library="transformers", own="/workspace/train.py:45"),
        ),
        (
            HEAD + LIBRARY + OWN + PYTHON + "ValueError: 7",
            Raised(place="/workspace/train.py:45"),
        ),
        (HEAD + LIBRARY + "ValueError: 7", Raised(place="transformers/trainer.py:3579", library="transformers")),
        (
            "ValueError      Traceback (most recent call last)\n" + IPYTHON + "ValueError: 7",
            Raised(place="peft/peft_model.py:581", library="peft", own="Cell In[12]:1"),
        ),
        ("╭── Traceback (most recent call last) ──╮\n" + RICH, Raised(place="/workspace/starchat/train.py:353")),
        (HEAD + OWN + "A\n\nDuring handling\n" + HEAD + LIBRARY + "B", Raised(place="transformers/trainer.py:3579", library="transformers")),
        (HEAD + PYTHON + "ValueError: 7", None),
        (OWN + "ValueError: 7", None),
        ("", None),
    ],
    ids=["own", "library from own", "Python's own files are nobody's", "library", "notebook", "rich", "the last of two", "only Python's", "no traceback", "empty"],
)  # fmt: skip
def test_where_the_last_traceback_ends(text: str, expected: Raised | None) -> None:
    assert raised_in(text) == expected


def test_only_for_what_is_not_known() -> None:
    assert explain(HEAD + OWN + LIBRARY + "ValueError: seven is no number of layers").raised is not None
    assert explain(HEAD + OWN + LIBRARY + "RuntimeError: CUDA out of memory").raised is None
