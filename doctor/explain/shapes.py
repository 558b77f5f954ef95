"""Patterns of tensors that do not fit together: batches of different lengths, wrong sizes, a loss that is no number."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x2)
    Pattern(
        id="matmul-shapes",
        regex=r"mat1 and mat2 shapes cannot be multiplied \((?P<left>\d+x\d+) and (?P<right>\d+x\d+)\)",
        meaning=t("A linear layer got {left} and has weights of {right}: the two inner numbers must be equal.", left="?", right="?"),
        advice=t("in_features of that layer must be the first one's second number; mind flatten and another backbone's width."),
    ),
    # RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry 0 and [1, 224, 224] at entry 1
    Pattern(
        id="collate-sizes",
        regex=r"stack expects each tensor to be equal size, but got (?P<first>\[[\d, ]*\]) at entry 0 and (?P<other>\[[\d, ]*\]) at entry (?P<index>\d+)",
        meaning=t("Samples of one batch have different sizes ({first} and {other}), and the loader cannot put them together.", first="?", other="?"),
        advice=t("Texts: DataCollatorWithPadding, or padding and truncation in the tokenizer. Pictures: convert('RGB') and one size."),
    ),
    # ValueError: Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' 'truncation=True'
    Pattern(
        id="tokenizer-sizes",
        regex=r"Unable to create tensor, you should probably activate truncation and/or padding",
        meaning=t("The texts of one batch have different lengths, or a column holds something that is no number (a text, a None, nested labels)."),
        advice=t("truncation=True and a collator that pads; remove columns the model does not take; labels as integers."),
    ),
    # ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 512])
    Pattern(
        id="batch-of-one",
        regex=r"Expected more than 1 value per channel when training",
        meaning=t("Batch normalisation got a batch of one, typically the last one of the epoch."),
        advice=t("drop_last=True in the training loader, or another batch size."),
    ),
    # RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[8, 1, 224, 224] to have 3 channels, but got 1 channels instead
    Pattern(
        id="channels",
        regex=r"expected input\[[\d, ]+\] to have (?P<wanted>\d+) channels, but got (?P<got>\d+) channels",
        meaning=t("The network takes pictures of {wanted} channels and got {got}.", wanted="?", got="?"),
        advice=t("image.convert('RGB') (greyscale, RGBA); channels come first: (batch, channels, height, width)."),
    ),
    # RuntimeError: grad can be implicitly created only for scalar outputs
    Pattern(
        id="loss-not-scalar",
        regex=r"grad can be implicitly created only for scalar outputs",
        meaning=t("backward() was called on more than one number: one loss a sample, or one a card with DataParallel."),
        advice=t("loss.mean().backward()."),
    ),
    # RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
    Pattern(
        id="leaf-in-place",
        regex=r"a (?:view of a )?leaf Variable that requires grad is being used in an in-place operation",
        meaning=t("A parameter was changed in place while gradients are recorded."),
        advice=t("Initialise and clip parameters under `with torch.no_grad():`."),
    ),
    # Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.
    Pattern(
        id="loss-scale-at-minimum",
        regex=r"Current loss scale already at minimum|cannot decrease scale anymore",
        meaning=t("fp16 overflowed again and again: the gradients are infinite or NaN whatever the loss scale, so it is the training and not the scaling."),
        advice=t("bf16 where the card has it (models trained in bf16, such as Qwen and LLaMA, overflow in fp16); else a lower learning rate, gradient clipping, and a look at the data."),
        confirms=("fp16-on-bf16-pretrained", "learning-rate-too-high", "clipping-missing"),
    ),
    # ValueError: Expected input batch_size (4088) to match target batch_size (8).
    Pattern(
        id="batch-and-target",
        regex=r"Expected input batch_size \((?P<input>\d+)\) to match target batch_size \((?P<target>\d+)\)",
        meaning=t("The loss got {input} predictions and {target} labels: one a token against one a text, or labels that were not shifted or padded along.", input="?", target="?"),
        advice=t("Print logits.shape and labels.shape before the loss; a classifier takes ForSequenceClassification, labels of language models are padded with -100 to the length of input_ids."),
    ),
    # ValueError: The model did not return a loss from the inputs, only the following keys: logits. For reference, the inputs it received are input_ids,attention_mask.
    Pattern(
        id="no-loss",
        regex=r"model did not return a loss from the inputs",
        meaning=t("The batch held no labels, so the model computed no loss."),
        advice=t("Name the column labels (not label_id, target ...), keep it through map and remove_columns; language models: DataCollatorForLanguageModeling(tokenizer, mlm=False)."),
    ),
    # ValueError: No columns in the dataset match the model's forward method signature.
    Pattern(
        id="no-columns",
        regex=r"No columns in the dataset match the model's forward method signature",
        meaning=t("Trainer drops every column that the model does not take, and none was left: the data were not tokenised, or the model is wrapped and hides its arguments."),
        advice=t("ds = ds.map(tokenize, batched=True) before the Trainer; with a wrapped model remove_unused_columns=False."),
    ),
)  # fmt: skip
