"""Each rule on wrong code and on its right twin; the twin stays silent above note."""

from __future__ import annotations

import textwrap

import pytest

from doctor.lint import RULE_IDS, all_rules, lint_source
from doctor.model import Environment, Facts, Gpu, Gpus, Snapshot, ok

NOW = {"torch": "2.13.0", "transformers": "5.24.0"}
OLD = {"torch": "1.12.0", "transformers": "4.24.0"}


def card(capability: str, **variables: str) -> Snapshot:
    gpus = Gpus(items=(Gpu(index=0, name="a card", compute_capability=capability),))
    return Snapshot(facts=Facts(gpus=ok(gpus), environment=ok(Environment(variables=variables))))


# (rule, level, wrong code, right twin, versions)
TWINS = [
    ("cuda-visible-devices-set-late", "warn",
     "import torch, os\nprint(torch.cuda.device_count())\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'",
     "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\nimport torch", NOW),
    ("fp16-params-with-gradscaler", "fail",
     "import torch\nfrom transformers import AutoModel\nm = AutoModel.from_pretrained('bert-base-cased', dtype='float16')\ns = torch.amp.GradScaler('cuda')",
     "import torch\nfrom transformers import AutoModel\nm = AutoModel.from_pretrained('bert-base-cased', dtype=torch.float32)\ns = torch.amp.GradScaler('cuda')", NOW),
    ("fp16-params-with-gradscaler", "fail",
     "import torch\nfrom transformers import AutoModel, TrainingArguments\nm = AutoModel.from_pretrained('x', torch_dtype=torch.half)\na = TrainingArguments('o', fp16=True)",
     "import torch\nfrom transformers import AutoModel, TrainingArguments\nm = AutoModel.from_pretrained('x', torch_dtype=torch.half)\na = TrainingArguments('o', bf16=True)", NOW),
    ("clip-before-unscale", "fail",
     "import torch\nscaler = torch.cuda.amp.GradScaler()\nfor b in d:\n    scaler.scale(f(b)).backward()\n    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()",
     "import torch\nscaler = torch.cuda.amp.GradScaler()\nfor b in d:\n    scaler.scale(f(b)).backward()\n    scaler.unscale_(o)\n    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()", OLD),
    ("unscale-twice", "fail",
     "for b in d:\n    scaler.unscale_(o)\n    scaler.unscale_(o)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()",
     "for b in d:\n    scaler.unscale_(o)\n    scaler.unscale_(p)\n    scaler.step(o)\n    scaler.update()\n    o.zero_grad()", NOW),
    ("fp16-on-bf16-pretrained", "warn",
     "from transformers import AutoModelForSeq2SeqLM as M, TrainingArguments\nm = M.from_pretrained('google/flan-t5-base')\na = TrainingArguments('o', fp16=True)",
     "from transformers import AutoModelForSeq2SeqLM as M, TrainingArguments\nm = M.from_pretrained('google/flan-t5-base')\na = TrainingArguments('o', bf16=True)", NOW),
    ("eval-logits-accumulate", "warn",
     "from transformers import Trainer, AutoModelForCausalLM\nnet = AutoModelForCausalLM.from_pretrained('gpt2')\nTrainer(model=net, compute_metrics=f)",
     "from transformers import Trainer, AutoModelForSequenceClassification\nnet = AutoModelForSequenceClassification.from_pretrained('gpt2')\nTrainer(model=net, compute_metrics=f)", NOW),
    ("oom-retry-inside-except", "warn",
     "try:\n    step(b)\nexcept RuntimeError as e:\n    if 'out of memory' in str(e):\n        step(b[:2])",
     "oom = False\ntry:\n    step(b)\nexcept RuntimeError as e:\n    oom = 'out of memory' in str(e)\nif oom:\n    step(b[:2])", NOW),
    ("loss-kept-as-tensor", "warn",
     "total = 0\nfor b in d:\n    loss = f(b)\n    loss.backward()\n    total += loss",
     "total = 0\nfor b in d:\n    loss = f(b)\n    loss.backward()\n    total += loss.item()", NOW),
    ("numpy-worker-seed", "warn",
     "import numpy as np\nfrom torch.utils.data import DataLoader\nclass D:\n    def __getitem__(self, i): return np.random.rand()\nl = DataLoader(D(), num_workers=2)",
     "import numpy as np\nfrom torch.utils.data import DataLoader\nclass D:\n    def __getitem__(self, i): return np.random.rand()\nl = DataLoader(D(), num_workers=2, worker_init_fn=g)", {"torch": "1.8.1"}),
    ("token-id-out-of-vocab", "fail",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('gpt2')\nm = AutoModel.from_pretrained('gpt2')\nt.add_special_tokens({'pad_token': '<pad>'})",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('gpt2')\nm = AutoModel.from_pretrained('gpt2')\nt.add_special_tokens({'pad_token': t.eos_token})", NOW),
    ("token-id-out-of-vocab", "fail",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('x')\nm = AutoModel.from_pretrained('x')\nt.add_tokens(['[E1]'])",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('x')\nm = AutoModel.from_pretrained('x')\nt.add_tokens(['[E1]'])\nm.resize_token_embeddings(len(t))", NOW),
    ("vocab-file-splitlines-corruption", "warn",
     "def read_vocab(p):\n    return open(p).read().splitlines()",
     "def read_vocab(p):\n    return [line.rstrip('\\n') for line in open(p)]", NOW),
    ("ckpt-missing-state", "warn",
     "import torch\ndef save(p, m, o, scheduler):\n    torch.save({'m': m.state_dict(), 'o': o.state_dict()}, p)",
     "import torch\ndef save(p, m, o, scheduler):\n    torch.save({'m': m.state_dict(), 'o': o.state_dict(), 's': scheduler.state_dict()}, p)", NOW),
    ("cublas-workspace-unset", "fail",
     "import torch\ntorch.use_deterministic_algorithms(True)\nm.cuda()",
     "import os\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'\nimport torch\ntorch.use_deterministic_algorithms(True)\nm.cuda()", NOW),
    ("reentrant-checkpoint-frozen-inputs", "fail",
     "from peft import get_peft_model\nfrom transformers import TrainingArguments\na = TrainingArguments('o', gradient_checkpointing=True)",
     "from peft import get_peft_model\nfrom transformers import TrainingArguments\na = TrainingArguments('o', gradient_checkpointing=True, gradient_checkpointing_kwargs={'use_reentrant': False})", {"transformers": "4.44.2"}),
    ("ddp-unused-parameters", "warn",
     "from torch.nn.parallel import DistributedDataParallel\nfrom transformers import BertModel\nm = BertModel.from_pretrained('bert-base-cased')\ndef f(b): return m(**b).last_hidden_state\nd = DistributedDataParallel(m)",
     "from torch.nn.parallel import DistributedDataParallel\nfrom transformers import BertModel\nm = BertModel.from_pretrained('bert-base-cased', add_pooling_layer=False)\ndef f(b): return m(**b).last_hidden_state\nd = DistributedDataParallel(m)", NOW),
    ("learning-rate-too-high", "warn",
     "import torch\nfrom transformers import AutoModel\nm = AutoModel.from_pretrained('hfl/chinese-macbert-base')\no = torch.optim.AdamW(m.parameters(), lr=1e-3)",
     "import torch\nfrom transformers import AutoModel\nm = AutoModel.from_pretrained('hfl/chinese-macbert-base')\no = torch.optim.AdamW(m.parameters(), lr=3e-5)", NOW),
    ("optimizer-before-cuda", "fail",
     "import torch\nm = net()\no = torch.optim.AdamW(m.parameters(), fused=True)\nm.cuda()",
     "import torch\nm = net()\nm.cuda()\no = torch.optim.AdamW(m.parameters(), fused=True)", {"torch": "2.1.0"}),
    ("accumulation-loss-not-scaled", "warn",
     "for i, b in enumerate(d):\n    f(b).backward()\n    if i % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()",
     "for i, b in enumerate(d):\n    (f(b) / 4).backward()\n    if i % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()", NOW),
    ("zero-grad-missing", "warn",
     "for b in d:\n    f(b).backward()\n    optimizer.step()",
     "for b in d:\n    f(b).backward()\n    optimizer.step()\n    optimizer.zero_grad()", NOW),
    ("override-signature-changed", "fail",
     "from transformers import Trainer\nclass T(Trainer):\n    def compute_loss(self, model, inputs, return_outputs=False):\n        return model(**inputs).loss",
     "from transformers import Trainer\nclass T(Trainer):\n    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):\n        return model(**inputs).loss", NOW),
    ("removed-import", "fail", "from transformers import AdamW", "from torch.optim import AdamW", NOW),
    ("removed-import", "fail", "import torch\ntorch.onnx.dynamo_export(m)", "import torch\ntorch.onnx.export(m, dynamo=True)", NOW),
    ("removed-argument", "fail",
     "from transformers import TrainingArguments\nTrainingArguments('o', evaluation_strategy='steps')",
     "from transformers import TrainingArguments\nTrainingArguments('o', eval_strategy='steps')", NOW),
    ("argument-too-new", "fail",
     "from torch.optim import AdamW\nAdamW(p, lr=1e-5, fused=True)",
     "from torch.optim import AdamW\nAdamW(p, lr=1e-5)", OLD),
    ("argument-too-new", "fail",
     "from transformers import TrainingArguments\nTrainingArguments('o', eval_strategy='steps')",
     "from transformers import TrainingArguments\nTrainingArguments('o', evaluation_strategy='steps')", OLD),
    ("unknown-argument", "fail",
     "from transformers import TrainingArguments\nTrainingArguments('o', offload_optimizer_device='cpu')",
     "from transformers import TrainingArguments\nTrainingArguments('o', deepspeed='ds.json')", NOW),
    ("torch-load-weights-only-default", "warn",
     "import torch\nc = torch.load(p)\na = c['args']",
     "import torch\nc = torch.load(p)\na = c['model']", NOW),
    ("onnx-dynamo-default-dynamic-axes", "warn",
     "import torch\nm.eval()\ntorch.onnx.export(m, x, 'f', dynamic_axes={'x': {0: 'b'}})",
     "import torch\nm.eval()\ntorch.onnx.export(m, x, 'f', dynamic_axes={'x': {0: 'b'}}, dynamo=False)", NOW),
    ("onnx-fixed-axes", "warn",
     "import torch\ntorch.onnx.export(m, (input_ids,), 'f')",
     "import torch\ntorch.onnx.export(m, (input_ids,), 'f', dynamic_shapes=s)", NOW),
    ("onnx-export-in-train-mode", "fail",
     "import torch\nm = torch.nn.Sequential(torch.nn.Dropout())\ny = m(x)\ntorch.onnx.export(m, x, 'f', dynamic_shapes=s)",
     "import torch\nm = torch.nn.Sequential(torch.nn.Dropout())\nm.eval()\ny = m(x)\ntorch.onnx.export(m, x, 'f', dynamic_shapes=s)", NOW),
    ("clip-before-unscale", "fail",
     "import torch\ns = torch.amp.GradScaler('cuda')\ndef update():\n    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)\n    s.step(o)\n    s.update()\n    o.zero_grad()",
     "import torch\ns = torch.amp.GradScaler('cuda')\ndef update():\n    s.unscale_(o)\n    torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)\n    s.step(o)\n    s.update()\n    o.zero_grad()", NOW),
    ("unscale-twice", "fail",
     "for i, b in enumerate(d):\n    scaler.unscale_(o)\n    if (i + 1) % 4 == 0:\n        scaler.step(o)\n        scaler.update()\n        o.zero_grad()",
     "for i, b in enumerate(d):\n    if (i + 1) % 4 == 0:\n        scaler.unscale_(o)\n        scaler.step(o)\n        scaler.update()\n        o.zero_grad()", NOW),
    ("fp16-params-with-gradscaler", "fail",
     "import torch\ndef main(model):\n    model.half()\n    s = torch.amp.GradScaler('cuda')",
     "import torch\ndef main(model, images):\n    images.half()\n    s = torch.amp.GradScaler('cuda')", NOW),
    ("oom-cleanup-skipped", "warn",
     "import torch\nfor b in d:\n    try:\n        m(b).backward()\n        o.zero_grad()\n    except torch.cuda.OutOfMemoryError:\n        continue",
     "import torch\nfor b in d:\n    try:\n        m(b).backward()\n    except torch.cuda.OutOfMemoryError:\n        o.zero_grad()\n        continue\n    o.zero_grad()", NOW),
    ("oom-cleanup-skipped", "warn",
     "import torch\ntry:\n    m(b)\nexcept MemoryError:\n    torch.cuda.empty_cache()",
     "import torch\ntry:\n    m(b)\nexcept (MemoryError, torch.cuda.OutOfMemoryError):\n    torch.cuda.empty_cache()", NOW),
    ("numpy-worker-seed", "warn",
     "import numpy as np\nfrom torch.utils.data import DataLoader\nclass D:\n    def __init__(self): self.g = np.random.default_rng(0)\n    def __getitem__(self, i): return self.g.normal()\nl = DataLoader(D(), num_workers=2)",
     "import numpy as np\nfrom torch.utils.data import DataLoader\nclass D:\n    def __init__(self): self.g = np.random.default_rng(0)\n    def __getitem__(self, i): return np.random.normal()\nl = DataLoader(D(), num_workers=2)", NOW),
    ("token-id-out-of-vocab", "warn",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('./x')\nm = AutoModel.from_pretrained('./x')\nt.add_tokens(read(p))",
     "from transformers import AutoTokenizer, AutoModel\nt = AutoTokenizer.from_pretrained('./x')\nm = AutoModel.from_pretrained('./x')\nt.add_tokens(read(p))\nm.resize_token_embeddings(len(t))", NOW),
    ("accumulation-loss-not-scaled", "warn",
     "for i, b in enumerate(d):\n    f(b).backward()\n    if (i + 1) % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()",
     "for i, b in enumerate(d):\n    f(b).backward()\n    if (i + 1) % 4 == 0:\n        for p in ps:\n            p.grad.div_(4)\n        optimizer.step()\n        optimizer.zero_grad()", NOW),
    ("oom-retry-inside-except", "warn",
     "import torch\ndef size(run, n):\n    try:\n        run(n)\n        return n\n    except torch.cuda.OutOfMemoryError:\n        return size(run, n // 2)",
     "import torch\ndef size(run, n):\n    try:\n        run(n)\n        return n\n    except torch.cuda.OutOfMemoryError:\n        pass\n    return size(run, n // 2)", NOW),
    ("ddp-unused-parameters", "warn",
     "import torch\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.a = torch.nn.Linear(2, 2)\n        self.b = torch.nn.Linear(2, 2)\n    def forward(self, x, task):\n        if task == 'a':\n            return self.a(x)\n        return self.b(x)\nm = DDP(M())",
     "import torch\nclass M(torch.nn.Module):\n    def __init__(self):\n        self.a = torch.nn.Linear(2, 2)\n        self.b = torch.nn.Linear(2, 2)\n    def forward(self, x, mask=None):\n        if mask is None:\n            return self.b(self.a(x))\n        return self.b(self.a(x * mask))\nm = DDP(M())", NOW),
    ("checkpoint-keys-not-loaded", "warn",
     "import torch\nd = torch.nn.DataParallel(m)\ntorch.save(d.state_dict(), 'w')\nn.load_state_dict(s, strict=False)",
     "import torch\nd = torch.nn.DataParallel(m)\ntorch.save(d.module.state_dict(), 'w')\nn.load_state_dict(s, strict=False)", NOW),
    ("resume-not-bitwise", "warn",
     "from transformers import TrainingArguments\na = TrainingArguments('o', ignore_data_skip=True)\nt.train(resume_from_checkpoint=True)",
     "from transformers import TrainingArguments\na = TrainingArguments('o')\nt.train(resume_from_checkpoint=True)", NOW),
    ("ddp-unused-parameters", "warn",
     "import torch.nn as nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nclass M(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n        self.b = nn.Linear(2, 2)\n    def forward(self, x): return self.a(x)\nd = DDP(M())",
     "import torch.nn as nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nclass M(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n        self.b = nn.Linear(2, 2)\n    def forward(self, x): return self.b(self.a(x))\nd = DDP(M())", NOW),
    ("optimizer-before-cuda", "fail",
     "import torch\nm = net()\no = torch.optim.Adagrad(m.parameters())\nm.cuda()",
     "import torch\nm = net()\no = torch.optim.SGD(m.parameters())\nm.cuda()", NOW),
    ("texts-not-padded", "warn",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train']).train()",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train'], processing_class=tok).train()", NOW),
    ("texts-not-padded", "warn",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True, max_length=512)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train']).train()",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True, padding='max_length')\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train']).train()", NOW),
    ("texts-not-padded", "warn",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train']).train()",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=TrainingArguments('o', per_device_train_batch_size=1), train_dataset=d['train']).train()", NOW),
    ("texts-not-padded", "warn",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(model=m, args=a, train_dataset=d['train']).train()",
     "from transformers import AutoTokenizer, Trainer, TrainingArguments\ntok = AutoTokenizer.from_pretrained('bert-base-cased')\ndef prep(rows):\n    return tok(rows['text'], truncation=True)\nd = load_dataset('imdb').map(prep, batched=True)\nTrainer(**more, model=m, args=a, train_dataset=d['train']).train()", NOW),
    ("oom-retry-inside-except", "warn",
     "import torch\ndef f(blocks):\n    try:\n        return convert(blocks)\n    except torch.OutOfMemoryError:\n        torch.cuda.empty_cache()\n        return convert(blocks)",
     "import torch\ndef f(blocks):\n    try:\n        return convert(blocks)\n    except torch.OutOfMemoryError:\n        blocks = blocks.to('cpu')\n        return convert(blocks)", NOW),
    ("onnx-export-in-train-mode", "fail",
     "import torch\nmodel = Net()\ntorch.onnx.export(model, x, 'm.onnx', dynamo=True)",
     "import torch\nmodel, meta = load_program(x)\ntorch.onnx.export(model, x, 'm.onnx', dynamo=True)", NOW),
    ("cublas-workspace-unset", "warn",
     "import torch\ndef f(args):\n    if args.exact:\n        torch.use_deterministic_algorithms(True)\n    model.cuda()",
     "import torch\ndef f(test):\n    if x:\n        old = torch.are_deterministic_algorithms_enabled()\n        try:\n            torch.use_deterministic_algorithms(True)\n            test('cuda')\n        finally:\n            torch.use_deterministic_algorithms(old)", NOW),
    ("accumulation-loss-not-scaled", "warn",
     "def f(m, o, n, more):\n    for accum in range(n):\n        x = more()\n        loss = m(x)\n        loss.backward()\n    o.step()",
     "def f(m, o, batch, accumulation):\n    for _ in range(2 if accumulation > 1 else 1):\n        loss = m(**batch).loss\n        loss.backward()\n        del loss\n    o.step()", NOW),
    ("accumulation-loss-not-scaled", "warn",
     "def f(m, o, accum, batches):\n    for _ in range(accum):\n        loss = m(next(batches))\n        loss.backward()\n    o.step()",
     "def f(m, o, accum, batches):\n    for _ in range(accum):\n        loss = m(next(batches)) / accum\n        loss.backward()\n    o.step()", NOW),
    ("onnx-dynamo-default-dynamic-axes", "warn",
     "import torch\ntorch.onnx.export(m, x, 'm.onnx', dynamic_axes=axes)",
     "import torch\nold = {'dynamo': False} if v else {}\ntorch.onnx.export(m, x, 'm.onnx', dynamic_axes=axes, **old)", NOW),
    ("accumulation-loss-not-scaled", "warn",
     "def f(m, o, batch):\n    for micro in batch.chunk(4):\n        m(micro).backward()\n    o.step()\n    o.zero_grad()",
     "def f(m, o, batch):\n    for micro in batch.chunk(4):\n        (m(micro) / 4).backward()\n    o.step()\n    o.zero_grad()", NOW),
    ("removed-import", "fail", "import numpy as np\nx = np.zeros(2, np.float)", "import numpy as np\nx = np.zeros(2, np.float32)", {"numpy": "1.26.4"}),
    ("removed-import", "fail", "import numpy as np\nx = np.zeros(2, np.bool)", "import numpy as np\nx = np.zeros(2, np.bool_)", {"numpy": "1.24.0"}),
    ("unknown-argument", "fail",
     "import torch\no = torch.optim.AdamW(p, learning_rate=1e-5)",
     "import torch\no = torch.optim.AdamW(p, lr=1e-5)", NOW),
    ("torch-load-weights-only-default", "fail",
     "import torch\nm = torch.load(p)\nm.eval()",
     "import torch\nm = torch.load(p, weights_only=False)\nm.eval()", NOW),
    ("onnx-input-order-mismatch", "fail",
     "import torch\nm.eval()\ntorch.onnx.export(m, (ids, mask), 'f', input_names=['attention_mask', 'input_ids'], dynamic_shapes=s)",
     "import torch\nm.eval()\ntorch.onnx.export(m, (ids, mask), 'f', input_names=['input_ids', 'attention_mask'], dynamic_shapes=s)", NOW),
]  # fmt: skip

NOTES = [
    ("clipping-missing", "for b in d:\n    f(b).backward()\n    optimizer.step()\n    optimizer.zero_grad()", NOW),
    ("seeds-missing", "for b in d:\n    f(b).backward()", NOW),
    ("padding-to-max-length", "tok(x, padding='max_length', max_length=512)", NOW),
    ("deprecated-api", "import torch\ns = torch.cuda.amp.GradScaler()", NOW),
    ("checkpoint-keys-not-loaded", "m.load_state_dict(s, strict=False)", NOW),
    ("evaluation-without-eval", "def evaluate(model, loader):\n    for b in loader:\n        out.append(model(b).argmax(-1))", NOW),
    ("last-window-dropped", "for i, b in enumerate(d):\n    (f(b) / 4).backward()\n    if (i + 1) % 4 == 0:\n        optimizer.step()\n        optimizer.zero_grad()", NOW),
]  # fmt: skip


def loud(source: str, versions: dict[str, str]) -> dict[str, str]:
    return {item.id: item.level for item in lint_source(source, versions) if item.level != "note"}


@pytest.mark.parametrize(
    ("rule", "level", "wrong", "right", "versions"), TWINS, ids=[f"{n}-{r[0]}" for n, r in enumerate(TWINS)]
)
def test_wrong_code_is_found_and_its_twin_is_not(
    rule: str, level: str, wrong: str, right: str, versions: dict[str, str]
) -> None:
    assert loud(wrong, versions) == {rule: level}
    assert loud(right, versions) == {}


@pytest.mark.parametrize(("rule", "source", "versions"), NOTES, ids=[row[0] for row in NOTES])
def test_what_is_missing_is_only_a_note(rule: str, source: str, versions: dict[str, str]) -> None:
    found = lint_source(source, versions)
    assert rule in [item.id for item in found]
    assert all(item.level == "note" for item in found)


def test_every_rule_id_has_a_row() -> None:
    other = {
        "deepspeed-config-wrong",  # tests/lint/test_deepspeed_config.py
        "needed-package-missing",
        "flash-attn-unsupported-gpu",
        "script-not-decodable",
        "syntax-error",
        "torchfix",
    }
    assert {row[0] for row in TWINS} | {row[0] for row in NOTES} | other == set(RULE_IDS)


def test_every_rule_asks_a_question() -> None:
    assert all((one.__doc__ or "").strip().endswith("?") for one in all_rules())


@pytest.mark.parametrize(("capability", "found"), [("7.5", True), ("8.0", False), ("12.0", False)])
def test_flash_attention_is_judged_by_the_card(capability: str, found: bool) -> None:
    source = "from transformers import AutoModel\nAutoModel.from_pretrained('x', attn_implementation='flash_attention_2')"
    ids = [item.id for item in lint_source(source, NOW, snapshot=card(capability))]
    assert ("flash-attn-unsupported-gpu" in ids) is found


RIGHT_TWINS_OF_NOTES = [
    "missing = m.load_state_dict(s, strict=False)\nprint(missing)",
    "import torch\n@torch.no_grad()\ndef evaluate(model, loader):\n    model.eval()\n    for b in loader:\n        out.append(model(b).argmax(-1))",
    "tok(x, padding='max_length', max_length=64)",
    "for i, b in enumerate(d):\n    clip_grad_norm_(p, 1)\n    set_seed(1)\n    (f(b) / 4).backward()\n    if (i + 1) % 4 == 0 or i + 1 == len(d):\n        optimizer.step()\n        optimizer.zero_grad()",
]


@pytest.mark.parametrize("source", RIGHT_TWINS_OF_NOTES, ids=range(len(RIGHT_TWINS_OF_NOTES)))
def test_the_right_twin_of_a_note_is_silent(source: str) -> None:
    assert lint_source(source, NOW) == []


def test_a_variable_of_the_session_answers_for_the_script() -> None:
    source = "import torch\ntorch.use_deterministic_algorithms(True)\nm.cuda()"
    assert loud(source, NOW) == {"cublas-workspace-unset": "fail"}
    assert lint_source(source, NOW, snapshot=card("8.0", CUBLAS_WORKSPACE_CONFIG=":4096:8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    from transformers import AdamW\nexcept ImportError:\n    from torch.optim import AdamW",
        "import transformers\nif old:\n    from transformers import AdamW\nelse:\n    from torch.optim import AdamW",
    ],
)
def test_a_script_that_provides_for_both_releases_is_not_judged(source: str) -> None:
    assert loud(source, NOW) == {}


def test_versions_decide_and_unknown_versions_stay_silent() -> None:
    source = "from transformers import TrainingArguments\nTrainingArguments('o', evaluation_strategy='steps')"
    assert loud(source, {"transformers": "4.44.2"}) == {}
    assert loud(source, {"transformers": "4.52.0"}) == {"removed-argument": "fail"}
    assert loud(source, {}) == {}


def test_a_comment_silences_one_rule_or_all() -> None:
    line = "from transformers import AdamW"
    assert loud(line + "  # doctor: ignore[removed-import]", NOW) == {}
    assert loud(line + "  # doctor: ignore", NOW) == {}
    assert loud(line + "  # doctor: ignore[other-id]", NOW) == {"removed-import": "fail"}


def test_a_notebooks_code_cells_are_read_and_magics_are_not() -> None:
    notebook = '{"cells": [{"cell_type": "markdown", "source": ["from x import"]}, {"cell_type": "code", "source": ["%pip install x\\n", "!nvidia-smi\\n", "from transformers import AdamW"]}]}'
    assert [item.id for item in lint_source(notebook, NOW, "a.ipynb")] == ["removed-import"]


@pytest.mark.parametrize(
    "source", ['{"cells": "no"}', "[]", "{", '{"cells": [1, {"cell_type": "code", "source": "x ="}]}']
)
def test_a_broken_notebook_is_unknown_never_fine(source: str) -> None:
    (found,) = lint_source(source, NOW, "a.ipynb")
    assert (found.id, found.level) == ("syntax-error", "unknown")


@pytest.mark.parametrize("source", ["def f(:\n", "print 'x'\n", "x = \x00\n", "(" * 500])
def test_what_is_not_python_is_unknown_never_fine(source: str) -> None:
    (found,) = lint_source(source, NOW)
    assert (found.id, found.level) == ("syntax-error", "unknown")


def test_a_long_innocent_script_is_silent() -> None:
    body = textwrap.dedent(
        """
        import torch
        from transformers import AutoModelForSequenceClassification, set_seed
        set_seed(42)
        model = AutoModelForSequenceClassification.from_pretrained("bert-base-cased", num_labels=2).cuda()
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, fused=True)
        scaler = torch.amp.GradScaler("cuda")
        total = 0.0
        for epoch in range(3):
            for batch in loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = model(**batch).loss
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                total += loss.item()
        """
    )
    assert lint_source(body, NOW) == []
