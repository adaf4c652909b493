#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "golden.h"

/// Passes of several tasks' microbatches through a whole golden backbone.
namespace braid::exec {

using costmodel::Module;
using testing::GoldenCase;

inline costmodel::AdapterShape adapter_shape(std::int64_t rank, double dropout,
                                             std::initializer_list<costmodel::Module> targets) {
  costmodel::AdapterShape shape;
  shape.rank = rank;
  shape.alpha = 2.0 * static_cast<double>(rank);
  shape.dropout = dropout;
  for (const costmodel::Module module : targets) shape.targets[static_cast<std::size_t>(module)] = true;
  return shape;
}

inline const std::initializer_list<Module> kAll = {Module::q,    Module::k,  Module::v,   Module::o,
                                                   Module::gate, Module::up, Module::down};

/// Several tasks on a golden backbone, with samples of odd lengths.
struct Tasks {
  explicit Tasks(std::vector<costmodel::AdapterShape> adapter_shapes, const char* backbone = "llama",
                 costmodel::Recompute recompute = {}, kernels::Device& device = cpu_device())
      : golden(backbone, recompute, device), shapes(std::move(adapter_shapes)) {
    const auto vocabulary = static_cast<std::uint64_t>(golden.backbone.vocabulary);
    RandomStream random(5);
    for (std::size_t task = 0; task < shapes.size(); ++task) {
      workload::Dataset& dataset = datasets.emplace_back();
      for (int i = 0; i < 3; ++i) {
        workload::Sample sample;
        const std::uint64_t length = 5 + random.next_below(30);
        for (std::uint64_t t = 0; t < length; ++t)
          sample.append(static_cast<std::int32_t>(random.next_below(vocabulary)), t > 3);
        dataset.samples.push_back(std::move(sample));
      }
      seeds.push_back(40 + task);
      adapters.push_back(std::make_unique<Adapter>(golden.backbone, shapes[task], golden.layers(), seeds.back()));
      golden.model.begin(*adapters.back());
      for (float& number : adapters.back()->parameters()) number += static_cast<float>(random.next_normal() * 0.02);
    }
  }

  planner::Microbatch microbatch(std::vector<planner::TaskIndex> tasks, std::int32_t padding = 0) const {
    planner::Microbatch microbatch;
    for (const planner::TaskIndex task : tasks) {
      const std::vector<workload::Sample>& samples = datasets[static_cast<std::size_t>(task)].samples;
      for (std::size_t i = 0; i < samples.size(); ++i) {
        planner::Segment segment;
        segment.task = task;
        segment.sample = segment.index = static_cast<std::int32_t>(i);
        segment.end = static_cast<std::int32_t>(samples[i].tokens.size());
        segment.padding = padding;
        segment.scored = segment.end - 4;
        microbatch.segments.push_back(segment);
      }
    }
    return microbatch;
  }

  /// One pass; returns the losses.
  std::vector<double> pass(const planner::Microbatch& microbatch) {
    TokenLosses losses = token_losses();
    pass(microbatch, losses);
    return losses.sums();
  }
  TokenLosses token_losses() const { return TokenLosses(std::vector<double>(shapes.size(), 0.01)); }
  void pass(const planner::Microbatch& microbatch, Objective& objective) {
    run_whole(golden.model.forward(0, make_batch(microbatch, datasets), {}, adapters, seeds, objective));
    run_whole(golden.model.backward(0, {}, adapters, seeds));
  }

  /// A microbatch in pieces, of all its samples at once: cut at the multiples of `chunk` tokens. Some have padding.
  std::vector<planner::Microbatch> chunks(const planner::Microbatch& whole, std::int32_t chunk) const {
    std::vector<planner::Microbatch> pieces;
    for (std::int32_t begin = 0;; begin += chunk) {
      planner::Microbatch piece;
      for (planner::Segment segment : whole.segments) {
        const std::int32_t end = segment.end;
        if (end <= begin) continue;
        segment.begin = begin;
        segment.end = std::min(end, begin + chunk);
        segment.padding = segment.index;
        piece.segments.push_back(segment);
      }
      if (piece.segments.empty()) return pieces;
      piece.id = static_cast<planner::MicrobatchId>(pieces.size());
      pieces.push_back(std::move(piece));
    }
  }

  /// Chunks forward in order and backward in reverse.
  std::vector<double> pass_of_chunks(std::span<const planner::Microbatch> chunks) {
    TokenLosses losses = token_losses();
    pass_of_chunks(chunks, losses);
    return losses.sums();
  }
  void pass_of_chunks(std::span<const planner::Microbatch> chunks, Objective& objective) {
    for (const planner::Microbatch& chunk : chunks)
      run_whole(golden.model.forward(chunk.id, make_batch(chunk, datasets), {}, adapters, seeds, objective));
    for (std::size_t c = chunks.size(); c-- > 0;) run_whole(golden.model.backward(chunks[c].id, {}, adapters, seeds));
  }

  std::vector<float> take_gradient(std::size_t task) {
    const kernels::Vector gradients = adapters[task]->gradients();
    std::vector<float> taken(gradients.begin(), gradients.end());
    std::fill(gradients.begin(), gradients.end(), 0.0F);
    return taken;
  }

  GoldenCase golden;
  std::vector<costmodel::AdapterShape> shapes;
  std::vector<workload::Dataset> datasets;
  std::vector<std::uint64_t> seeds;
  std::vector<std::unique_ptr<Adapter>> adapters;
};

}  // namespace braid::exec
