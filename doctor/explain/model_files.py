"""Patterns of what a model brings along and leaves behind: tokenizer files, weights, what is saved of it."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # Exception: data did not match any variant of untagged enum ModelWrapper at line 1251012 column 3
    Pattern(
        id="tokenizer-file-newer",
        regex=r"data did not match any variant of untagged enum \w+",
        meaning=t("tokenizer.json was written by a newer tokenizers than the one installed (or is cut short)."),
        advice=t("`python -m pip install -U transformers`, which brings the tokenizers that fits; if the error stays, download the file again."),
    ),
    # _pickle.UnpicklingError: invalid load key, 'v'.   |   WeightsUnpickler error: Unsupported operand 118
    Pattern(
        id="weights-are-text",
        regex=r"invalid load key, '[v<]'|Unsupported operand (?:118|60)\b",
        meaning=t("The file holds text where weights should be: a Git LFS pointer (it begins with 'version'), or a web page that was saved in its place."),
        advice=t("`head -c 200 FILE` shows which. In a clone `git lfs install && git lfs pull`; else `hf download NAME --local-dir DIR`."),
        confirms=("corrupt-checkpoint",),
        hides=("weights-only",),
    ),
    # RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading them again
    Pattern(
        id="shared-tensors",
        regex=r"Some tensors share memory, this will lead to duplicate memory on disk",
        meaning=t("Two names of the model are one tensor (tied weights, mostly lm_head and the embeddings), and safetensors writes a tensor only once."),
        advice=t("Trainer before transformers 5: save_safetensors=False. In your own loop safetensors.torch.save_model(model, path); in your own model class name the second one in _tied_weights_keys."),
    ),
    # OSError: Can't load tokenizer for 'bert-base-chinese'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.
    Pattern(
        id="not-loaded-from-hub",
        regex=r"Can't load (?:the )?(?:tokenizer|configuration|model|image processor|feature extractor|processor) (?:for|of) '(?P<name>(?![A-Za-z]:)\w[\w.-]*(?:/[\w.-]+)?)'",
        meaning=t("{name} came neither from the Hub nor from the cache: mostly the Hub is not reached from here; else a local folder of that name, without these files, goes before it.", name="?"),
        advice=t("`ls {name}` shows whether such a folder stands in the way. In mainland China `export HF_ENDPOINT=https://hf-mirror.com` before Python starts, or download the model once and give the whole path of its folder.", name="NAME"),
        confirms=("hub-endpoint-invalid", "hub-offline", "platform-proxy-there"),
        hides=("tokenizer-files-missing",),
    ),
    # OSError: Can't load tokenizer for './out'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.
    Pattern(
        id="tokenizer-files-missing",
        regex=r"Can't load tokenizer for '(?P<place>[^'\n]+)'",
        meaning=t("There are no tokenizer files in {place}: checkpoints often hold the weights alone, and a local folder of that name goes before the Hub.", place="?"),
        advice=t("Load the tokenizer from the base model, and save it beside the weights: tokenizer.save_pretrained(DIR)."),
    ),
    # ValueError: The state dictionary of the model you are trying to load is corrupted. Are you sure it was properly saved?
    Pattern(
        id="checkpoint-names",
        regex=r"state dictionary of the model you are trying to load is corrupted",
        meaning=t("The names of the weights in the file fit neither the whole model nor its base: saved from another class or a wrapper (module., base_model.), or the file is damaged."),
        advice=t("`python -c \"import safetensors; print(list(safetensors.safe_open('FILE', 'pt').keys())[:5])\"` shows the names; a downloaded one: delete it and download again, your own: save with save_pretrained of the unwrapped model."),
        confirms=("corrupt-checkpoint", "checkpoint-keys-not-loaded"),
    ),
    # ValueError: Unrecognized model in ./out. Should have a `model_type` key in its config.json, or contain one of the following strings in its name
    Pattern(
        id="config-without-type",
        regex=r"Unrecognized model in (?P<place>\S+)\. Should have a `model_type` key",
        meaning=t("config.json in {place} says no model type: it belongs to another program, to an adapter, or the download is not whole.", place="?"),
        advice=t("`ls -la` the folder; an adapter is loaded with peft on its base model, a model of another library with that library."),
    ),
    # ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library serialization file
    Pattern(
        id="tokenizer-conversion",
        regex=r"Couldn't instantiate the backend tokenizer",
        meaning=t("The model has no tokenizer.json, and what would convert its vocabulary is not installed."),
        advice=t("`python -m pip install sentencepiece tiktoken protobuf`, then start Python anew."),
        confirms=("needed-package-missing",),
    ),
    # ValueError: Cannot use chat template functions because tokenizer.chat_template is not set and no template argument was passed!
    Pattern(
        id="no-chat-template",
        regex=r"tokenizer\.chat_template is not set",
        meaning=t("This tokenizer has no chat template: a base model, or one older than templates."),
        advice=t("Take the -Instruct or -Chat model, or set tokenizer.chat_template to the template you train with."),
    ),
    # ValueError: You cannot perform fine-tuning on purely quantized models. Please attach trainable adapters on top of the quantized model
    Pattern(
        id="quantized-without-adapter",
        regex=r"cannot perform fine-tuning on purely quantized models|model you are trying to fine-tune is quantized with",
        meaning=t("Weights of 4 or 8 bits cannot be trained themselves; only an adapter on top of them can."),
        advice=t("model = prepare_model_for_kbit_training(model); model = get_peft_model(model, LoraConfig(...)) before the Trainer is made."),
    ),
    # ValueError: Trying to set a tensor of shape torch.Size([32000, 4096]) in "weight" (which has shape torch.Size([90894, 4096])), this look incorrect.
    Pattern(
        id="tensor-shape-on-loading",
        regex=r"Trying to set a tensor of shape torch\.Size\(\[(?P<saved>[\d, ]*)\]\) in \"(?P<name>\w+)\" \(which has shape torch\.Size\(\[(?P<wanted>[\d, ]*)\]\)",
        meaning=t("config.json wants a weight of {wanted} and the file holds one of {saved}: mostly vocab_size after tokens were added or weights merged, else files of two models in one folder.", wanted="?", saved="?"),
        advice=t("Set vocab_size in config.json to the first number of the file's embedding, or save model, config and tokenizer together after resize_token_embeddings; an adapter with a grown vocabulary wants its base resized before it is loaded."),
        confirms=("token-id-out-of-vocab",),
    ),
    # RuntimeError: Internal: could not parse ModelProto from /root/autodl-tmp/chatglm3-6b/tokenizer.model
    Pattern(
        id="sentencepiece-file",
        regex=r"could not parse ModelProto from (?P<file>\S+)",
        meaning=t("{file} is no whole SentencePiece model: a Git LFS pointer of some hundred bytes, or a download that was cut.", file="?"),
        advice=t("`ls -l {file}` (some hundred KB to some MB are right), then download it again: `hf download NAME tokenizer.model --local-dir DIR`, or `git lfs pull` in a clone.", file="FILE"),
        confirms=("corrupt-checkpoint",),
    ),
    # ValueError: Can't find a vocabulary file at path 'chinese_L-12_H-768_A-12'.   |   OSError: Model name 'vocab/vocab.txt' was not found in tokenizers model name list (bert-base-uncased)
    Pattern(
        id="vocabulary-file-missing",
        regex=r"Can't find a vocabulary file at path '(?P<path>[^'\n]+)'|Model name '(?P<path2>[^'\n]+)' was not found in (?:tokenizers )?model name list",
        meaning=t("There is no vocab.txt at {path}{path2}: a relative path counts from the folder that the script is started in.", path="", path2=""),
        advice=t("`ls {path}{path2}` where you start it, and write the whole path: the folder that holds vocab.txt and config.json. A checkpoint of Google's TensorFlow BERT is no such folder; bert-base-chinese of the Hub is.", path="", path2=""),
    ),
    # AssertionError: The vocab size of the tokenizer does not match the vocab size of the LoRA weight.
    Pattern(
        id="tokenizer-of-another-model",
        regex=r"vocab size of the tokenizer does not match the vocab size of",
        meaning=t("The tokenizer beside the adapter is another model's: its number of tokens is not that of the saved embedding."),
        advice=t("Take the tokenizer that was saved with the adapter (its folder's tokenizer files), and merge adapters in the order in which they were trained."),
    ),
)  # fmt: skip
