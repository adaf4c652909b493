#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "planner/plan/policy.h"

namespace braid::planner {

std::unique_ptr<Policy> make_hf_peft();
std::unique_ptr<Policy> make_nemo();
std::unique_ptr<Policy> make_megatron_fsdp();
std::unique_ptr<Policy> make_megatron_pp();
std::unique_ptr<Policy> make_gpipe();
std::unique_ptr<Policy> make_sl_peft();
std::unique_ptr<Policy> make_mlora();
std::unique_ptr<Policy> make_task_fused();
std::unique_ptr<Policy> make_task_sequential();
std::unique_ptr<Policy> make_lobra();
std::unique_ptr<Policy> make_lobra_sequential();
std::unique_ptr<Policy> make_lorafusion();
std::unique_ptr<Policy> make_muxtune();
std::unique_ptr<Policy> make_braid();

/// All policies of this build, in the order of `braid compare`.
const std::vector<std::unique_ptr<Policy>>& policies();

/// Throws Error that lists what is known.
PolicyChoice parse_policy(std::string_view text);
std::vector<PolicyChoice> parse_policies(std::string_view text);

}  // namespace braid::planner
