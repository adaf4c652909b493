#include "planner/muxtune/run_costs.h"

#include <algorithm>
#include <cmath>

#include "planner/window/alignment.h"

namespace braid::planner {
namespace {

using costmodel::MicrobatchLoad;

/// A part's load cut into so many like microbatches; samples longer than a chunk read, in the mean, half of what comes
/// before their last chunk.
void cut_load(const MicrobatchLoad& part, double cut, std::int64_t chunk_size, MicrobatchLoad& load) {
  load = part;
  if (cut == 1) return;
  const auto share = [&](std::int64_t tokens) {
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(tokens) / cut));
  };
  load.tokens = share(part.tokens);
  load.scored = std::min(load.tokens, share(part.scored));
  load.tasks.front().tokens = load.tokens;
  const std::int64_t length = part.sequences.front().context;
  const bool chunked = chunk_size > 0 && length > chunk_size;
  const std::int64_t piece = std::min(load.tokens, chunked ? chunk_size : length);
  const std::int64_t prefix = chunked ? (length - chunk_size) / 2 : 0;
  load.sequences.assign(static_cast<std::size_t>(std::max<std::int64_t>(1, load.tokens / piece)),
                        {prefix, prefix + piece, chunked});
}

double nearest_power(double ratio) {
  return std::exp2(std::round(std::log2(ratio)));
}

}  // namespace

RunCosts::RunCosts(const PolicyInput& input, const FixedPlan& fixed, std::span<const costmodel::StageShape> stages,
                   std::span<const TaskIndex> tasks, std::span<const MicrobatchLoad> loads)
    : count_(tasks.size()), parts_(input.microbatches) {
  find_cuts(input, fixed, tasks, loads);
  find_fullness(input, fixed, tasks, loads);
  std::vector<costmodel::StageShape> unlike;
  for (const costmodel::StageShape& shape : stages) {
    const auto known = std::find(unlike.begin(), unlike.end(), shape);
    stage_places_.push_back(static_cast<std::size_t>(known - unlike.begin()));
    if (known == unlike.end()) unlike.push_back(shape);
  }
  costs_.assign(unlike.size(), HTaskCosts(static_cast<std::int32_t>(count_)));
  std::vector<MicrobatchLoad> pieces(loads.size());
  for (std::size_t c = 0; c < cuts_.size(); ++c) {
    for (std::size_t t = 0; t < loads.size(); ++t) cut_load(loads[t], cuts_[c], fixed.batching.chunk_size, pieces[t]);
    const auto fullness = [&](std::int32_t first, std::int32_t last) {
      const std::size_t run = place({first, last});
      return cut_places_[run] == c ? fullness_[run] : 0;
    };
    for (std::size_t u = 0; u < unlike.size(); ++u)
      costs_[u].ask(input.latency.run_prices(), unlike[u], pieces, fullness);
  }
}

void RunCosts::find_cuts(const PolicyInput& input, const FixedPlan& fixed, std::span<const TaskIndex> tasks,
                         std::span<const MicrobatchLoad> loads) {
  cut_places_.assign(count_ * count_, 0);
  const auto replicas = static_cast<std::int64_t>(input.deployment.size());
  for (std::size_t first = 0; first < count_; ++first) {
    std::int64_t tokens = 0, longest = 0;
    for (std::size_t last = first; last < count_; ++last) {
      tokens += loads[last].tokens;
      longest = std::max(longest, input.workload.tasks[static_cast<std::size_t>(tasks[last])].sample_tokens());
      double cut = 1;
      if (fixed.batching.chunk_size > 0) {
        const std::int64_t pack = fixed.batching.pack_length > 0
                                      ? fixed.batching.pack_length
                                      : pack_length_for({&longest, 1}, fixed.batching.chunk_size);
        cut = static_cast<double>(std::min(pack, tokens)) / static_cast<double>(fixed.batching.chunk_size);
      } else if (fixed.batching.pack_length > 0) {
        cut = std::min(1.0, static_cast<double>(tokens) / static_cast<double>(fixed.batching.pack_length));
      }
      cut = std::max(nearest_power(cut), 1 / static_cast<double>(parts_ * replicas));
      const auto known = std::find(cuts_.begin(), cuts_.end(), cut);
      cut_places_[first * count_ + last] = static_cast<std::uint8_t>(known - cuts_.begin());
      if (known != cuts_.end()) continue;
      cuts_.push_back(cut);
      microbatches_.push_back(std::max<std::int64_t>(1, std::llround(cut * static_cast<double>(parts_))));
    }
  }
}

void RunCosts::find_fullness(const PolicyInput& input, const FixedPlan& fixed, std::span<const TaskIndex> tasks,
                             std::span<const MicrobatchLoad> loads) {
  fullness_.assign(count_ * count_, 1);
  const auto replicas = static_cast<std::int64_t>(input.deployment.size());
  if (replicas == 1 || (fixed.batching.chunk_size == 0 && fixed.batching.pack_length == 0)) return;
  for (std::size_t first = 0; first < count_; ++first) {
    std::vector<std::pair<std::int64_t, std::int64_t>> tokens_by_pack;  // of all replicas, largest packs first
    std::int64_t part = 0, longest = 0;
    for (std::size_t last = first; last < count_; ++last) {
      const workload::Task& task = input.workload.tasks[static_cast<std::size_t>(tasks[last])];
      const std::int64_t tokens = loads[last].tokens * parts_ * replicas;
      longest = std::max(longest, task.sample_tokens());
      part += loads[last].tokens;
      const std::int64_t pack = fixed.batching.pack_length > 0 ? fixed.batching.pack_length : longest;
      const std::int64_t size_here = std::min(pack, tokens);
      const auto known = std::find_if(tokens_by_pack.begin(), tokens_by_pack.end(),
                                      [&](const auto& one) { return one.first <= size_here; });
      if (known != tokens_by_pack.end() && known->first == size_here) {
        known->second += tokens;
      } else {
        tokens_by_pack.insert(known, {size_here, tokens});
      }
      // Packs are dealt largest first: those of a size stand on as even a floor as larger ones left.
      std::int64_t fullest = 0, dealt = 0;
      for (const auto& [size, of_size] : tokens_by_pack) {
        dealt += of_size;
        fullest = std::max(fullest, (dealt + replicas * size - 1) / (replicas * size) * size);
      }
      const TaskRun run{static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)};
      const double mean = static_cast<double>(microbatches(run) * part) / cut(run);
      fullness_[place(run)] = std::max(1.0, static_cast<double>(fullest) / mean);
    }
  }
}

}  // namespace braid::planner
