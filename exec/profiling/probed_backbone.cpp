#include "exec/profiling/probed_backbone.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "base/steady_clock.h"
#include "exec/example/random_weights.h"
#include "exec/objectives/token_losses.h"

namespace braid::exec {
namespace {

constexpr std::uint64_t kSeed = 7;

costmodel::BackboneShape bottom_layers(costmodel::BackboneShape backbone, std::int64_t layers) {
  backbone.layers = std::min(layers, backbone.layers);
  return backbone;
}

void run_apart(const std::unique_ptr<ShardedPass>& pass) {
  while (pass->next()) {
  }
}

}  // namespace

ProbedBackbone::ProbedBackbone(const costmodel::BackboneShape& backbone, std::int64_t layers, kernels::Device& device,
                               int tp, costmodel::DataType weights)
    : shape_(bottom_layers(backbone, layers)),
      layers_{0, static_cast<std::int32_t>(shape_.layers)},
      pool_(device),
      probe_(device),
      model_(Shard(shape_, 0, tp), layers_, {}, random_weights(Shard(shape_, 0, tp).part(), device.kernels(), weights),
             pool_, probe_) {}

void ProbedBackbone::set_adapters(std::span<const costmodel::AdapterShape> adapters) {
  adapters_.clear();
  for (const costmodel::AdapterShape& adapter : adapters) {
    Adapter& one = *adapters_.emplace_back(std::make_unique<Adapter>(shape_, adapter, layers_, kSeed));
    model_.begin(one);
    one.move_to(pool_.device());
  }
}

void ProbedBackbone::draw_parameters() {
  constexpr float kDeviation = 0.02F;
  RandomStream random(kSeed);
  for (const std::unique_ptr<Adapter>& adapter : adapters_) {
    std::vector<float> numbers(adapter->parameters().size());
    for (float& number : numbers) number = kDeviation * static_cast<float>(random.next_normal());
    pool_.device().upload(std::as_bytes(std::span(numbers)), adapter->parameters().data());
    adapter->changed();
  }
}

void ProbedBackbone::poison(std::size_t task) {
  Adapter& adapter = *adapters_.at(task);
  const kernels::Vector numbers = adapter.parameters();
  pool_.device().kernels().fill(std::numeric_limits<float>::quiet_NaN(), {numbers.data(), 1, std::ssize(numbers)});
  adapter.changed();
}

std::vector<std::vector<float>> ProbedBackbone::take_gradients() {
  kernels::Device& device = pool_.device();
  std::vector<std::vector<float>> all;
  for (const std::unique_ptr<Adapter>& adapter : adapters_) {
    const kernels::Vector gradients = adapter->gradients();
    std::vector<float> own(gradients.size());
    device.download(gradients.data(), std::as_writable_bytes(std::span(own)));
    device.wait();
    device.kernels().fill(0, {gradients.data(), 1, std::ssize(gradients)});
    all.push_back(std::move(own));
  }
  return all;
}

ProbedBackbone::Passes ProbedBackbone::run(const MeasuredPoint& point, bool records) {
  BRAID_CHECK(!adapters_.empty(), "a pass without an adapter");
  std::vector<Batch> batches;
  for (const planner::Microbatch& microbatch : point.microbatches)
    batches.push_back(random_batch(microbatch, shape_.vocabulary));
  const std::vector<std::uint64_t> seeds(adapters_.size(), kSeed);
  TokenLosses losses(
      std::vector<double>(adapters_.size(), 1.0 / static_cast<double>(std::max<std::int64_t>(point.tokens(), 1))));
  const auto count = static_cast<planner::MicrobatchId>(batches.size());
  kernels::Device& device = pool_.device();
  probe_.record(records);
  Passes passes;
  device.wait();
  const std::unique_ptr<kernels::Event> start = device.record();
  for (planner::MicrobatchId id = 0; id < count; ++id)
    run_apart(model_.forward(id, std::move(batches[static_cast<std::size_t>(id)]), {}, adapters_, seeds, losses));
  const std::unique_ptr<kernels::Event> turn = device.record();
  passes.forward = probe_.take_records();
  const std::unique_ptr<kernels::Event> back = device.record();
  for (planner::MicrobatchId id = count; id-- > 0;) run_apart(model_.backward(id, {}, adapters_, seeds));
  const std::unique_ptr<kernels::Event> end = device.record();
  passes.backward = probe_.take_records();
  model_.settle_losses();
  passes.forward_seconds = seconds_between(*start->ended(), *turn->ended());
  passes.backward_seconds = seconds_between(*back->ended(), *end->ended());
  return passes;
}

}  // namespace braid::exec
