#include "exec/probed_backbone.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "base/steady_clock.h"
#include "exec/random_weights.h"

namespace braid::exec {
namespace {

costmodel::BackboneShape bottom_layers(costmodel::BackboneShape backbone, std::int64_t layers) {
  backbone.layers = std::min(layers, backbone.layers);
  return backbone;
}

}  // namespace

std::vector<Batch> uniform_batches(const costmodel::BackboneShape& backbone, std::int64_t tokens, std::int64_t context,
                                   std::int64_t chunk) {
  workload::Dataset dataset;
  RandomStream random(static_cast<std::uint64_t>(tokens));
  for (std::int64_t first = 0; first < tokens; first += context) {
    workload::Sample& sample = dataset.samples.emplace_back();
    for (std::int64_t i = 0; i < std::min(context, tokens - first); ++i)
      sample.append(static_cast<std::int32_t>(random.next_below(static_cast<std::uint64_t>(backbone.vocabulary))),
                    true);
  }
  std::vector<Batch> batches;
  for (std::int64_t begin = 0; begin < context; begin += chunk) {
    planner::Microbatch microbatch;
    for (std::size_t index = 0; index < dataset.samples.size(); ++index) {
      const auto length = static_cast<std::int64_t>(dataset.samples[index].tokens.size());
      if (begin >= length) continue;
      planner::Segment& segment = microbatch.segments.emplace_back();
      segment.index = static_cast<std::int32_t>(index);
      segment.sample = segment.index;
      segment.begin = static_cast<std::int32_t>(begin);
      segment.end = static_cast<std::int32_t>(std::min(begin + chunk, length));
    }
    batches.push_back(make_batch(microbatch, {&dataset, 1}));
  }
  return batches;
}

ProbedBackbone::ProbedBackbone(const costmodel::BackboneShape& backbone, std::int64_t layers)
    : shape_(bottom_layers(backbone, layers)),
      layers_{0, static_cast<std::int32_t>(shape_.layers)},
      model_(shape_, layers_, random_weights(shape_), pool_, probe_) {}

void ProbedBackbone::set_adapter(const costmodel::AdapterShape& adapter) {
  adapters_.clear();
  adapters_.push_back(std::make_unique<Adapter>(shape_, adapter, layers_, 7));
}

ProbedBackbone::Passes ProbedBackbone::run(std::vector<Batch> batches, bool records) {
  BRAID_CHECK(!adapters_.empty(), "a pass without an adapter");
  const std::vector<std::uint64_t> seeds = {7};
  std::int64_t tokens = 0;
  for (const Batch& batch : batches) tokens += batch.rows();
  const std::vector<double> scale = {1.0 / static_cast<double>(tokens)};
  std::vector<TaskLoss> losses(1);
  const auto count = static_cast<planner::MicrobatchId>(batches.size());
  probe_.recording = records;
  probe_.records.clear();
  Passes passes;
  const SteadyClock::time_point start = SteadyClock::now();
  for (planner::MicrobatchId id = 0; id < count; ++id)
    model_.forward(id, std::move(batches[static_cast<std::size_t>(id)]), {}, adapters_, seeds, scale, losses);
  passes.forward_seconds = seconds_since(start);
  const std::size_t forwards = probe_.records.size();
  const SteadyClock::time_point turn = SteadyClock::now();
  for (planner::MicrobatchId id = count; id-- > 0;) model_.backward(id, {}, adapters_, seeds);
  passes.backward_seconds = seconds_since(turn);
  const std::span<const Probe::Record> all = probe_.records;
  passes.forward = all.first(forwards), passes.backward = all.subspan(forwards);
  return passes;
}

}  // namespace braid::exec
