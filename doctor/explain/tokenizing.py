"""Patterns of tokenizers: what they are given, and ids that are no ids."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # TypeError: TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]   |   ValueError: text input must be of type `str` (single example), `list[str]` (batch or single pretokenized example)
    Pattern(
        id="tokenizer-not-text",
        regex=r"TextEncodeInput must be Union|TextInputSequence must be str|text input must be of type `?str`? \(single example\)",
        meaning=t("The tokenizer was given something that is no text: a None or NaN from an empty cell, a number, or a pandas or numpy array."),
        advice=t("`df['text'].isna().sum()` and the types; df = df.dropna(subset=['text']); text.astype(str).tolist() for the call."),
    ),
    # OverflowError: can't convert negative int to unsigned   |   OverflowError: out of range integral type conversion attempted   |   IndexError: piece id is out of range.
    Pattern(
        id="decode-ignored",
        regex=r"OverflowError: can't convert negative int to unsigned|OverflowError: out of range integral type conversion attempted|IndexError: piece id is out of range",
        meaning=t("Ids are decoded that are none: -100 marks places that the loss leaves out (and generation pads with it)."),
        advice=t("In compute_metrics first: ids = np.where(ids != -100, ids, tokenizer.pad_token_id), for predictions and labels alike."),
    ),
    # OverflowError: int too big to convert
    Pattern(
        id="no-model-max-length",
        regex=r"OverflowError: int too big to convert",
        meaning=t("The tokenizer names no greatest length (model_max_length is 10^30), and that number was passed on as the length."),
        advice=t("Give max_length yourself, or tokenizer.model_max_length = 512 (the model's positions)."),
    ),
    # ValueError: You should supply an encoding or a list of encodings to this method that includes input_ids, but you provided ['label']
    Pattern(
        id="collator-without-ids",
        regex=r"that includes (?P<wanted>\w+), but you provided (?P<given>\[[^\]\n]*\])",
        meaning=t("The collator got samples with {given} only: the texts were not tokenised, or Trainer dropped the columns that the model's forward does not name.", given="?"),
        advice=t("dataset.map(tokenize) before the Trainer; for a model or collator of your own remove_unused_columns=False."),
        hides=("no-columns",),
    ),
    # ValueError: too many dimensions 'str'
    Pattern(
        id="text-as-tensor",
        regex=r"too many dimensions 'str'|new\(\): invalid data type 'str'|can't convert np\.ndarray of type numpy\.(?:object_|str_)",
        meaning=t("A text is to become a tensor: labels that are words, or a column that was not removed."),
        advice=t("Map labels to numbers (label2id) and remove text columns before the collator."),
    ),
    # ValueError: The following `model_kwargs` are not used by the model: ['token_type_ids'] (note: typos in the generate arguments will also show up in this list)
    Pattern(
        id="generate-arguments",
        regex=r"The following `model_kwargs` are not used by the model: (?P<names>\[[^\]\n]*\])",
        meaning=t("generate() was given {names}, which this model's forward does not take: something that the tokenizer adds, or a mistyped argument.", names="?"),
        advice=t("tokenizer(..., return_token_type_ids=False), or inputs.pop('token_type_ids', None)."),
    ),
    # ValueError: Input length of input_ids is 1034, but `max_length` is set to 512.
    Pattern(
        id="generate-length",
        regex=r"Input length of (?:input_ids|decoder_input_ids) is (?P<length>\d+), but `max_length` is set to (?P<limit>\d+)\.(?! This can lead to unexpected behavior)",
        meaning=t("The prompt ({length} tokens) is longer than max_length ({limit}), which counts prompt and answer together.", length="?", limit="?"),
        advice=t("max_new_tokens=256 in place of max_length."),
    ),
    # ValueError: Converting from SentencePiece and Tiktoken failed, if a converter for SentencePiece is available, provide a model path with a SentencePiece tokenizer.model file
    Pattern(
        id="tokenizer-converter",
        regex=r"Converting from (?:SentencePiece and )?Tiktoken failed|`tiktoken` is required to read a `tiktoken` file",
        meaning=t("The fast tokenizer could not be made from the files: sentencepiece, tiktoken or protobuf is missing, or tokenizer.model is damaged or a pointer file."),
        advice=t("`python -m pip install sentencepiece tiktoken protobuf`, restart Python; then look at the file's size (`ls -la`), and download it again if it is small."),
        confirms=("needed-package-missing", "corrupt-checkpoint"),
    ),
    # jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant/user/assistant/...   |   jinja2.exceptions.TemplateError: System role not supported
    Pattern(
        id="chat-roles",
        regex=r"Conversation roles must alternate|TemplateError: (?P<what>System role not supported|[^\n]{3,120})",
        meaning=t("The model's chat template refuses these messages: user and assistant must take turns, or it knows no system role."),
        advice=t("Merge neighbouring messages of one role, put the system text before the first user message, begin with the user."),
    ),
    # ImportError: apply_chat_template requires jinja2>=3.1.0 to be installed. Your version is 3.0.3.
    Pattern(
        id="jinja-too-old",
        regex=r"apply_chat_template requires jinja2",
        meaning=t("Chat templates need a newer jinja2 than this environment has."),
        advice=t("`python -m pip install -U jinja2`"),
    ),
)  # fmt: skip
