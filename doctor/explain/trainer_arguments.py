"""Patterns of Trainer, trl and accelerate as they are called: arguments that contradict, are renamed or missing."""

from __future__ import annotations

from doctor.explain.match import Pattern
from doctor.model import t

PATTERNS: tuple[Pattern, ...] = (
    # TypeError: CustomTrainer.compute_loss() got an unexpected keyword argument 'num_items_in_batch'
    Pattern(
        id="compute-loss-argument",
        regex=r"compute_loss\(\) got an unexpected keyword argument '(?P<argument>num_items_in_batch|return_outputs)'",
        meaning=t("A Trainer of your own (or of a library) overrides compute_loss with an older list of arguments: transformers 4.46 and newer pass {argument}.", argument="?"),
        advice=t("def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None); it is the number of tokens to divide a summed loss by, and may be left unused."),
        hides=("library-argument",),
    ),
    # TypeError: training_step() takes 3 positional arguments but 4 were given
    Pattern(
        id="training-step-argument",
        regex=r"(?P<method>training_step|compute_loss|prediction_step|log|_save_checkpoint|_get_train_sampler|get_batch_samples)\(\) takes (?:from )?\d[\w ]* positional arguments but \d+ were given",
        meaning=t("A Trainer of your own (or of a library) overrides {method}, and the installed transformers calls it with more arguments than it was written for.", method="?"),
        advice=t("Add *args, **kwargs to it and hand them on to super(); or the transformers that the code was written for."),
        confirms=("dependent-library-too-old",),
    ),
    # TypeError: Trainer.__init__() got an unexpected keyword argument 'processing_class'
    Pattern(
        id="transformers-older-than-trl",
        regex=r"(?<!\w)Trainer\.__init__\(\) got an unexpected keyword argument 'processing_class'",
        meaning=t("The code (trl from 0.12 on, or an example of today) passes processing_class, which transformers knows from 4.46 on: this one is older."),
        advice=t("`python -m pip install -U transformers` (4.46 or newer), or an older trl; in your own code for older versions tokenizer=tokenizer."),
        confirms=("dependent-library-too-old", "declared-requirement-not-met"),
        hides=("trainer-argument", "library-argument"),
    ),
    # TypeError: DPOTrainer.__init__() got an unexpected keyword argument 'max_prompt_length'   |   SFTTrainer.__init__() got an unexpected keyword argument 'dataset_text_field'
    Pattern(
        id="trl-trainer-argument",
        regex=r"(?P<name>SFT|DPO|PPO|GRPO|ORPO|KTO|CPO|BCO|RLOO|GKD|Reward|OnlineDPO|Iterative)(?:Trainer|SFTTrainer)\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("{name}Trainer of this trl does not take {argument}: trl moved what belongs to the training (lengths, beta, loss_type, dataset_text_field, packing) into {name}Config, and tokenizer is processing_class since 0.12.", name="?", argument="?"),
        advice=t("args={name}Config(output_dir=..., {argument}=...), and max_seq_length is max_length there; or the trl that the script was written for.", name="SFT", argument="max_length"),
        confirms=("removed-argument",),
        hides=("trainer-argument", "library-argument"),
    ),
    # TypeError: SFTConfig.__init__() got an unexpected keyword argument 'max_seq_length'. Did you mean 'max_length'?
    Pattern(
        id="trl-config-argument",
        regex=r"(?P<name>SFT|DPO|PPO|GRPO|ORPO|KTO|CPO|BCO|RLOO|GKD|Reward|OnlineDPO)Config\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("{name}Config of this trl does not take {argument}: it was renamed, removed, or comes with a newer one.", name="?", argument="?"),
        advice=t("max_seq_length is max_length now; `python -c 'import trl; help(trl.{name}Config)'` lists what it takes, `python -m pip show trl` the version that the script's own page should name.", name="SFT"),
        confirms=("removed-argument",),
        hides=("library-argument",),
    ),
    # ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found   |   ValueError: --load_best_model_at_end requires the saving steps to be a round multiple of the evaluation steps
    Pattern(
        id="best-model-strategies",
        regex=r"load_best_model_at_end requires the (?:save and eval|saving steps|sav\w+)",
        meaning=t("To load the best model, every checkpoint must have been evaluated: saving and evaluating must keep step."),
        advice=t("eval_strategy='steps', save_strategy='steps' (or both 'epoch'), and save_steps a multiple of eval_steps; or load_best_model_at_end=False."),
    ),
    # The `metric_for_best_model` training argument is set to 'eval_f1', which is not found in the evaluation metrics.   |   KeyError: 'eval_loss'
    Pattern(
        id="best-model-metric",
        regex=r"`metric_for_best_model` training argument is set to '(?P<metric>\w+)', which is not found[^\n]*?(?:metrics are: (?P<there>\[[^\]\n]*\]))?|KeyError: '(?P<metric2>eval_\w+)'",
        meaning=t("The evaluation gave no {metric}{metric2}, by which the best model is to be chosen: compute_metrics does not return it, there were no labels (then there is no eval_loss), or the name differs.", metric="", metric2=""),
        advice=t("compute_metrics returns {'f1': ...} for metric_for_best_model='f1'. No eval_loss: label_names=['labels'], and keep the labels' column."),
    ),
    # ValueError: You have set `args.eval_strategy` to IntervalStrategy.STEPS but you didn't pass an `eval_dataset` to `Trainer`.   |   ValueError: Trainer: evaluation requires an eval_dataset.
    Pattern(
        id="no-eval-dataset",
        regex=r"but you didn't pass an `eval_dataset` to `Trainer`|Trainer: evaluation requires an eval_dataset|Trainer: training requires a train_dataset",
        meaning=t("Trainer was told to evaluate (or train) and was given no data for it."),
        advice=t("eval_dataset=..., or eval_strategy='no'."),
    ),
    # ValueError: Can't find a valid checkpoint at out/checkpoint-500   |   ValueError: No valid checkpoint found in output directory (out)
    Pattern(
        id="no-checkpoint",
        regex=r"Can't find a valid checkpoint at (?P<place>\S+)|No valid checkpoint found in output directory \((?P<place2>[^)\n]*)\)",
        meaning=t("There is nothing to resume from in {place}{place2}: no checkpoint was written there, it was deleted, or it is half written.", place="", place2=""),
        advice=t("`ls -la` it: a whole one has the weights, optimizer.pt, scheduler.pt and trainer_state.json. Give the newest whole one's path, or leave resume_from_checkpoint out."),
        confirms=("corrupt-checkpoint", "disk-nearly-full"),
    ),
    # ValueError: Output directory (out) already exists and is not empty. Use --overwrite_output_dir to overcome.
    Pattern(
        id="output-not-empty",
        regex=r"Output directory \((?P<place>[^)\n]*)\) already exists and is not empty",
        meaning=t("The script will not write into {place}, which holds an earlier run.", place="?"),
        advice=t("Another output_dir, or resume from its last checkpoint; --overwrite_output_dir gives that run up."),
    ),
    # ValueError: train_dataset does not implement __len__, max_steps has to be specified.   |   args.max_steps must be set to a positive value if dataloader does not have a length, was -1
    Pattern(
        id="no-length",
        regex=r"max_steps has to be specified|args\.max_steps must be set to a positive value if dataloader does not have a length",
        meaning=t("A streamed data set has no length, so epochs cannot be counted."),
        advice=t("max_steps=N (samples / batch), which the learning rate's schedule needs as well."),
    ),
    # ValueError: FP16 Mixed precision training with AMP or APEX (`--fp16`) and FP16 half precision evaluation (`--fp16_full_eval`) can only be used on CUDA or MLU devices
    Pattern(
        id="fp16-without-gpu",
        regex=r"ixed precision training with AMP(?: or APEX)?[^\n]*can only be used on",
        meaning=t("fp16 was asked for, and torch sees no card."),
        advice=t("`python -c 'import torch; print(torch.__version__, torch.cuda.is_available())'`, then `doctor check` says why; on a CPU leave fp16 out."),
        confirms=("no-gpu-visible", "torch-cpu-only-build", "driver-too-old-for-torch-cuda", "cuda-visible-devices-invalid"),
    ),
    # ValueError: The global train batch size (1 x 6) must be evenly divisible by the number of generations per prompt (8).   |   generation_batch_size (6) must be divisible by num_generations (8).
    Pattern(
        id="grpo-generations",
        regex=r"batch size \([^)\n]*\) must be evenly divisible by the number of generations per prompt|must be divisible by num_generations",
        meaning=t("GRPO compares several answers to one prompt, and a batch must hold whole groups of them."),
        advice=t("num_generations to one of the values that the message lists, or per_device_train_batch_size x cards (x accumulation in newer trl) to a multiple of it."),
    ),
    # ValueError: Please make sure to properly initialize your accelerator via `accelerator = Accelerator()` before using any functionality from the `accelerate` library.   |   AttributeError: 'AcceleratorState' object has no attribute 'distributed_type'
    Pattern(
        id="accelerator-first",
        regex=r"properly initialize your accelerator via `accelerator = Accelerator\(\)`|'(?:AcceleratorState|PartialState)' object has no attribute|AcceleratorState has already been initialized and cannot be changed",
        meaning=t("accelerate's state was asked for before an Accelerator (or TrainingArguments) made it, or was made twice with different settings; in notebooks by running cells again."),
        advice=t("Make one Accelerator at the start, TrainingArguments before the model; in a notebook restart the kernel, or AcceleratorState._reset_state(True)."),
    ),
    # TypeError: BertModel.forward() got an unexpected keyword argument 'labels'
    Pattern(
        id="forward-argument",
        regex=r"(?P<model>\w+)?\.?forward\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("The batch (or the caller) passes {argument}, which the model's forward does not take.", argument="?"),
        advice=t("labels: a model with a head (AutoModelFor...), not the bare one. token_type_ids: return_token_type_ids=False. num_items_in_batch, cache_position and the like: **kwargs in your own forward, or the transformers it was written for."),
        hides=("library-argument",),
    ),
    # TypeError: LlamaForCausalLM.__init__() got an unexpected keyword argument 'dtype'   |   Qwen2ForCausalLM.__init__() got an unexpected keyword argument 'load_in_4bit'
    Pattern(
        id="from-pretrained-argument",
        regex=r"(?P<model>\w+(?:ForCausalLM|ForConditionalGeneration|ForSequenceClassification|ForMaskedLM|LMHeadModel|Model))\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'",
        meaning=t("from_pretrained handed {argument} on to the model, because this transformers does not know it itself.", argument="?"),
        advice=t("dtype is torch_dtype before 4.56; load_in_4bit and load_in_8bit are quantization_config=BitsAndBytesConfig(...); use_flash_attention_2 is attn_implementation='flash_attention_2'."),
        confirms=("removed-argument",),
        hides=("library-argument",),
    ),
    # RuntimeError: result type Float can't be cast to the desired output type Long   |   RuntimeError: Found dtype Long but expected Float   |   RuntimeError: "nll_loss_forward_reduce_cuda_kernel_2d_index" not implemented for 'Int'
    Pattern(
        id="label-type",
        regex=r"result type Float can't be cast to the desired output type (?:Long|long int)|expected scalar type (?:Long|Float) but found (?:Float|Long|Int)\b|\"\w*(?:mse|cross_entropy|nll_loss)\w*\" not implemented for '(?:Long|Int|Short|Bool)'|Found dtype Long but expected Float|expected floating point type for target with class probabilities, got Long",
        meaning=t("The labels have the wrong type for the loss: classes are whole numbers (long), regression and several labels at once are floats."),
        advice=t("problem_type='regression' (num_labels=1) or 'multi_label_classification' with labels as float32; one class a sample with labels as int64 (labels.long())."),
        hides=("two-dtypes",),
    ),
    # ValueError: Target is multiclass but average='binary'. Please choose another average setting
    Pattern(
        id="metric-average",
        regex=r"Target is multi(?:class|label-indicator) but average='binary'|Classification metrics can't handle a mix of",
        meaning=t("A metric for two classes got more, or probabilities where it wants classes."),
        advice=t("average='macro' (or 'weighted'); predictions through argmax(-1) first."),
    ),
    # ValueError: setting an array element with a sequence. The requested array has an inhomogeneous shape after 2 dimensions.
    Pattern(
        id="inhomogeneous-array",
        regex=r"The requested array has an inhomogeneous shape",
        meaning=t("numpy was given rows of different lengths; in compute_metrics mostly because the model returns more than logits."),
        advice=t("logits = logits[0] if isinstance(logits, tuple) else logits; or preprocess_logits_for_metrics in the Trainer. Elsewhere pad, or dtype=object."),
    ),
)  # fmt: skip
