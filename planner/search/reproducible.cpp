#include "planner/search/reproducible.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace braid::planner {
namespace {

/// As many as kernels/outer_sums.h adds up exactly.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;

/// Of any global batch at the most.
std::int64_t most_tokens(const workload::SampleIndex& samples, std::int32_t task, std::int64_t global_batch_size) {
  std::vector<std::int64_t> tokens;
  for (const workload::SampleSize& sample : samples.sizes(task)) tokens.push_back(sample.tokens);
  std::ranges::sort(tokens, std::greater<>());
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(global_batch_size)));
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

}  // namespace

void check_reproducible(const PlanningInput& input) {
  const std::string file = input.workload.file.string();
  if (input.cluster.gpu != "cpu")
    throw error("{}: reproducible: true is of processors, not of {}; set it to false, or plan for gpu: cpu", file,
                input.cluster.gpu);
  for (std::size_t t = 0; t < input.workload.tasks.size(); ++t) {
    const workload::Task& task = input.workload.tasks[t];
    if (task.adapter.method != costmodel::AdapterMethod::lora)
      throw error("{}: reproducible: true is of adapters of type lora, and task '{}' has type {}; set it to false",
                  file, task.name, name(task.adapter.method));
    const std::int64_t tokens = most_tokens(input.samples, static_cast<std::int32_t>(t), task.global_batch_size);
    if (tokens > kMostTokens)
      throw error(
          "{}: reproducible: true takes global batches of up to {} tokens, and those of task '{}' have up to {}; lower "
          "global_batch_size, or set it to false",
          file, kMostTokens, task.name, tokens);
  }
}

std::string how_reproducible(const Overrides& overrides) {
  if (overrides.tp.value_or(1) == 1) return "reproducible: adapters are the same to the byte whatever runs beside them";
  return fmt::format(
      "reproducible, but for the {} shards of a layer, which add their sums up apart: adapters are the same to about "
      "1e-5, "
      "and to the byte with --tp 1",
      *overrides.tp);
}

}  // namespace braid::planner
