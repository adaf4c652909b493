#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace braid::sim {

/// The finite set of fine-tuning tasks that a trace's jobs are drawn from: every backbone and dataset with every batch
/// size and adapter rank, LoRA on the attention's four projections.
struct Configurations {
  std::vector<std::string> backbones = {"llama2-7b"};
  std::vector<std::string> datasets = {"sst2", "qa", "rte"};  ///< one alone is MuxTune's uniform case
  std::vector<std::int64_t> batch_sizes = {2, 4, 8};          ///< those of MuxTune's random configurations (table 2)
  std::vector<std::int64_t> ranks = {16};
};

/// The datasets that are known: lengths fitted to what MuxTune §5.1 says of SST2, OpenBookQA and RTE, padded to 64, 128
/// and 256 tokens.
std::vector<std::string> known_datasets();

/// For each backbone, a task of each configuration, the dataset varying slowest. Throws Error for unknown names, which
/// lists those known, and for sizes below 1.
std::vector<workload::Workload> configured_tasks(const Configurations& wanted);

}  // namespace braid::sim
