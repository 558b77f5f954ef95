"""The keys of a DeepSpeed configuration by what becomes of them here: read, handed on, without effect, or refused."""

from __future__ import annotations

ZERO = "zero_optimization"
TUNING = (
    "allgather_partitions", "allgather_bucket_size", "overlap_comm", "reduce_scatter", "reduce_bucket_size",
    "contiguous_gradients", "round_robin_gradients", "use_multi_rank_bucket_allreduce", "sub_group_size",
    "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "stage3_model_persistence_threshold",
    "stage3_max_live_parameters", "stage3_max_reuse_distance", "stage3_module_granularity_threshold",
    "stage3_use_all_reduce_for_fetch_params", "prefetch_bucket_size", "param_persistence_threshold", "model_persistence_threshold",
    "max_live_parameters", "max_reuse_distance", "module_granularity_threshold", "use_all_reduce_for_fetch_params",
    "memory_efficient_linear", "log_trace_cache_warnings",
)  # fmt: skip
"""Of ``zero_optimization``: how much at a time, and when. The numbers stay the same."""
READ_OF_ZERO = ("stage", "offload_optimizer", "offload_param", "cpu_offload", "cpu_offload_param")
UNUSED_OF_ZERO = (
    "stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save", "load_from_fp32_weights",
    "ignore_unused_parameters", "cpu_offload_use_pin_memory",
)  # fmt: skip
READ = (
    "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping", "bf16", "bfloat16",
    "fp16", "torch_autocast", "optimizer", "scheduler", "communication_data_type", "data_types", "prescale_gradients",
    "gradient_predivide_factor", ZERO,
)  # fmt: skip
UNUSED = (
    "steps_per_print", "wall_clock_breakdown", "dump_state", "memory_breakdown", "comms_logger", "flops_profiler", "tensorboard",
    "wandb", "csv_monitor", "comet", "checkpoint", "activation_checkpointing", "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer", "aio", "timers", "log_level", "dataloader_drop_last", "nebula", "datastates", "disable_python_gc",
    "use_node_local_storage", "vocabulary_size", "global_rank", "data_parallel_size", "managed_gradient_accumulation",
    "fp32_allreduce",
)  # fmt: skip
"""They print, or tell of what is written; activations are recomputed where the profile says so, gradients exchanged in fp32."""
OTHER_NUMBERS = (
    "amp", "sparse_attention", "compression_training", "data_efficiency", "curriculum_learning", "progressive_layer_drop",
    "eigenvalue", "quantize_training", "sparse_gradients", "elasticity", "autotuning", "hybrid_engine", "pipeline", "tensor_parallel",
    "sequence_parallel_size", "zenflow", "expert_parallel", "compile", "weight_quantization", "gradient_allreduce_op",
    "seq_parallel_communication_data_type", "use_data_before_expert_parallelism", "data_parallel_group", "disable_allgather",
)  # fmt: skip
LOW_UNUSED = (
    "enabled", "auto_cast", "initial_scale_power", "loss_scale_window", "hysteresis", "consecutive_hysteresis", "min_loss_scale",
    "check_grad_overflow", "immediate_grad_update", "opt_level",
)  # fmt: skip
"""Of ``fp16`` and ``bf16``, beside ``loss_scale``: how DeepSpeed's own scaler moves; torch's is used."""
ADAM_UNUSED = (
    "torch_adam",
    "adam_w_mode",
    "fused",
    "foreach",
    "capturable",
    "differentiable",
    "bias_correction",
)
"""Of AdamW's ``params``: which program computes the same numbers. Without ``bias_correction`` they are others."""
