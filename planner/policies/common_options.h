#pragma once

#include <string>
#include <vector>

#include "planner/plan/policy.h"

namespace braid::planner {

/// What all systems but MuxTune have in common: how far rows are padded, whether adapters run as PEFT's separate
/// kernels or as LoRAFusion's fused ones, `transport_option` and `recompute_option`. With their meaning, save for that
/// of the last two, which the search reads.
/// `of_layers`: what may be recomputed (recomputation.h).
std::vector<PolicyOption> common_options(Padding padding_otherwise, bool of_layers = true);
void set_common_options(const PolicyInput& input, FixedPlan& fixed);

/// How messages and collectives go between GPUs: over the cluster's links, or copied through the hosts' memory, as
/// mLoRA's released code does. staged_cost reads it.
PolicyOption transport_option();
/// Of systems with tensor parallelism as Megatron-LM has it.
PolicyOption sequence_parallel_option();
bool shares_tokens(const OptionValues& options);
bool stages_through_hosts(const OptionValues& options);

Padding padding_of(const OptionValues& options);

/// Every task an hTask of its own, all in one bucket.
void one_task_per_htask(std::int32_t task_count, FixedPlan& fixed);

/// The option of systems that keep a backbone a task, and what it means: all resident, tasks in turn within a step; or
/// one, which tasks have one after another.
PolicyOption resident_option();
void place_backbones(const PolicyInput& input, FixedPlan& fixed);

/// For `--explain`: how such a system shares its backbone and fills its stages, and what that is good for.
std::vector<std::string> reasons_of_system(const PolicyInput& input, const FixedPlan& fixed);

}  // namespace braid::planner
