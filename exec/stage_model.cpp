#include "exec/stage_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/mixed_hash.h"
#include "exec/norm.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::Pass;
using kernels::ConstMatrix;
using kernels::Matrix;

StageModel::StageModel(Shard shard, HeldLayers layers, costmodel::Recompute recompute, StageWeights weights,
                       BufferPool& pool, Probe& probe, std::unique_ptr<WeightShares> shares)
    : shard_(std::move(shard)),
      layers_(std::move(layers)),
      recompute_(recompute),
      weights_(std::move(weights)),
      shares_(std::move(shares)),
      kernels_(pool.device().kernels()),
      pool_(pool),
      probe_(probe),
      losses_(pool.device()) {
  weights_.move_to(pool.device());
}

void StageModel::compile_layers() const {
  for (const LayerWeights& layer : weights_.layers) {
    for (const auto& product : layer.products) {
      if (product) product->compile();
    }
  }
  if (shares_) shares_->compile();
}

void StageModel::compile_head() const {
  if (weights_.head) weights_.head->compile();
}

/// The rows of tokens that other shards have are zeros.
Buffer StageModel::embed(const Batch& batch) const {
  const std::int64_t width = shard_.whole().hidden;
  const Share vocabulary = shard_.vocabulary();
  Buffer hidden = pool_.take(batch.rows() * width);
  const ConstMatrix table = weights_.embedding.rows(vocabulary.count() + 1, width);
  std::vector<std::int32_t> rows = batch.tokens;
  if (shard_.count() > 1) {
    for (std::int32_t& row : rows) {
      const bool here = vocabulary.first <= row && row < vocabulary.last;
      row = static_cast<std::int32_t>(here ? row - vocabulary.first : vocabulary.count());
    }
  }
  probe_.run({Operator::embedding, Pass::forward, {vocabulary.count(), width}, batch.rows(), 0, 0, 1},
             [&] { kernels_.embedding_forward(table, rows, false, hidden.matrix(batch.rows(), width)); });
  if (!weights_.positions.empty()) add_positions(batch, hidden.matrix(batch.rows(), width));
  return hidden;
}

/// Tokens stand after the keys that a prefix has, as transformers counts what is in its cache.
void StageModel::place_tokens(std::span<const std::unique_ptr<Adapter>> adapters, Batch& batch) {
  batch.places = batch.positions;
  for (const TaskSpan& span : batch.tasks) {
    const auto tokens =
        static_cast<std::int32_t>(adapters[static_cast<std::size_t>(span.task)]->shape().virtual_tokens());
    for (std::int64_t row = span.first; row < span.last; ++row) batch.places[static_cast<std::size_t>(row)] += tokens;
  }
}

/// Padding may stand behind the last position that there is.
void StageModel::add_positions(const Batch& batch, Matrix hidden) const {
  const std::int64_t count = shard_.whole().max_position;
  std::vector<std::int32_t> positions = batch.places;
  for (std::int32_t& position : positions) position = std::min(position, static_cast<std::int32_t>(count - 1));
  probe_.run({Operator::residual, Pass::forward, {hidden.columns}, hidden.rows, 0, 0, 1}, [&] {
    kernels_.embedding_forward(weights_.positions.rows(count, hidden.columns), positions, true, hidden);
  });
}

LayerBatch StageModel::layer_batch(const Live& live, std::size_t layer) {
  LayerBatch batch{live.batch, {}};
  for (const std::vector<SequencePlace>& places : live.earlier) {
    std::vector<EarlierChunk>& chunks = batch.earlier.emplace_back();
    for (const SequencePlace& place : places) {
      Live& earlier = live_.at(place.microbatch);
      chunks.push_back({earlier.batch, earlier.layers[layer], place.sequence});
    }
  }
  return batch;
}

costmodel::RecomputeKind StageModel::recomputed(std::size_t layer) const {
  return static_cast<std::int64_t>(layer) < recompute_.layers ? recompute_.kind : costmodel::RecomputeKind::none;
}

/// With the layer's products, which are there until those of another layer are asked for.
const LayerWeights& StageModel::weights_of(std::size_t layer) {
  if (shares_) shares_->gather(layer, weights_.layers);
  return weights_.layers[layer];
}

std::unique_ptr<ShardedPass> StageModel::layer_forward(const LayerContext& layer_context, Live& live, std::size_t layer,
                                                       Buffer hidden) {
  return exec::layer_forward(layer_context, weights_of(layer), layers_.numbers()[layer], layer_batch(live, layer),
                             recomputed(layer), std::move(hidden), live.layers[layer]);
}

std::unique_ptr<ShardedPass> StageModel::layer_backward(const LayerContext& layer_context, Live& live,
                                                        std::size_t layer, Buffer gradient) {
  return exec::layer_backward(layer_context, weights_of(layer), layers_.numbers()[layer], layer_batch(live, layer),
                              recomputed(layer), std::move(gradient), live.layers[layer]);
}

/// A layer's pass up to its next partial sum, after `sums` others, as one subgraph of the device.
std::optional<Matrix> StageModel::next_sum(ShardedPass& part, Pass pass, const Batch& batch, std::size_t layer,
                                           std::int64_t sums, bool evaluates) const {
  MixedHash kind(sums);
  kind.add(pass == Pass::forward).add(evaluates).add(static_cast<std::int64_t>(recomputed(layer)));
  kind.add(layers_.numbers()[layer] == 0);  // goes backward to its lowest adapter alone
  for (const TaskSpan& span : batch.tasks) kind.add(span.task);
  return kernels::as_subgraph(pool_.device(), {pass, batch.rows(), kind.value()}, [&] { return part.next(); });
}

/// Where a backward pass adds to earlier chunks' gradients, for all layers at once, as `chunk_gradient_bytes` has it.
void StageModel::take_key_gradients(const Live& live) {
  for (const std::vector<SequencePlace>& places : live.earlier) {
    for (const SequencePlace& place : places) {
      Live& earlier = live_.at(place.microbatch);
      for (LayerStash& stash : earlier.layers) {
        stash.key_gradients.resize(earlier.batch.sequences.size());
        Buffer& gradients = stash.key_gradients[place.sequence];
        if (gradients.size() > 0) continue;
        const std::int64_t numbers = 2 * earlier.batch.sequences[place.sequence].tokens * shard_.part().kv_width();
        gradients = pool_.take(numbers);
        kernels_.fill(0, gradients.row());
      }
    }
  }
}

/// To the gradient that the head left behind.
void StageModel::apply_late_factors(const Live& live) {
  const std::int64_t width = shard_.whole().hidden;
  const auto waits = [&](const SampleRows& rows) { return live.objective->has_late_factor(rows); };
  if (std::none_of(live.batch.sequences.begin(), live.batch.sequences.end(), waits)) return;
  losses_.settle();
  for (const SampleRows& rows : live.batch.sequences) {
    const auto factor = static_cast<float>(live.objective->late_factor(rows));
    if (factor == 1) continue;
    const Matrix part = live.gradient.matrix(live.batch.rows(), width).row_range(rows.first, rows.first + rows.count);
    kernels_.scale(factor, part, false, part);
  }
}

std::pair<std::size_t, std::size_t> StageModel::places(LayerRuns runs) const {
  const std::vector<planner::LayerRange>& all = layers_.runs();
  if (runs.last == 0) runs.last = all.size();
  std::size_t first = 0, last = 0;
  for (std::size_t run = 0; run < runs.last; ++run) {
    if (run < runs.first) first += static_cast<std::size_t>(all[run].count());
    last += static_cast<std::size_t>(all[run].count());
  }
  return {first, last};
}

/// Embedding, layer after layer, and the head, as far as they are here.
class StageModel::Forward final : public ShardedPass {
 public:
  Forward(StageModel& model, Live& live, const LayerContext& layer_context, std::pair<std::size_t, std::size_t> layers,
          Buffer input)
      : model_(model),
        live_(live),
        context_(layer_context),
        hidden_(std::move(input)),
        embeds_(model.has_embedding() && layers.first == 0),
        scores_(model.has_head() && layers.second == live.layers.size()),
        layer_(layers.first),
        last_(layers.second) {}

  std::optional<Matrix> next() override {
    if (embeds_) {
      embeds_ = false;
      hidden_ = model_.embed(live_.batch);
      if (model_.shard_.count() > 1) return hidden_.matrix(live_.batch.rows(), model_.shard_.whole().hidden);
    }
    while (layer_ < last_) {
      if (!part_) part_ = model_.layer_forward(context_, live_, layer_, std::move(hidden_));
      if (std::optional<Matrix> partial =
              model_.next_sum(*part_, Pass::forward, live_.batch, layer_, sums_, context_.evaluates)) {
        ++sums_;
        return partial;
      }
      sums_ = 0;
      hidden_ = part_->take_result();
      part_.reset();
      if (context_.evaluates) live_.layers[layer_] = {};
      ++layer_;
    }
    if (!scores_) return std::nullopt;
    if (!part_)
      part_ = head_pass({model_.shard_, model_.weights_, model_.pool_, model_.probe_, model_.losses_}, live_.batch,
                        hidden_, *live_.objective, context_.evaluates);
    if (std::optional<Matrix> partial = part_->next()) return partial;
    live_.gradient = part_->take_result();
    part_.reset();
    hidden_.release();
    scores_ = false;
    return std::nullopt;
  }

  Buffer take_result() override { return std::move(hidden_); }

 private:
  StageModel& model_;
  Live& live_;
  LayerContext context_;
  Buffer hidden_;
  bool embeds_, scores_;               // still to be done
  std::size_t layer_, last_;           // the next, and where it ends
  std::unique_ptr<ShardedPass> part_;  // that is under way
  std::int64_t sums_ = 0;              // of it, so far
};

/// Forward alone, of a microbatch that is nowhere else.
class StageModel::Score final : public ShardedPass {
 public:
  Score(StageModel& model, Live live, const LayerContext& layer_context, std::pair<std::size_t, std::size_t> layers,
        Buffer input)
      : live_(std::move(live)), forward_(model, live_, layer_context, layers, std::move(input)) {}

  std::optional<Matrix> next() override { return forward_.next(); }
  Buffer take_result() override { return forward_.take_result(); }

 private:
  Live live_;
  Forward forward_;
};

/// The layers from the last to the first.
class StageModel::Backward final : public ShardedPass {
 public:
  Backward(StageModel& model, planner::MicrobatchId id, Live& live, const LayerContext& layer_context,
           std::pair<std::size_t, std::size_t> layers, Buffer gradient)
      : model_(model),
        id_(id),
        live_(live),
        context_(layer_context),
        gradient_(std::move(gradient)),
        first_(layers.first),
        layer_(layers.second) {}

  std::optional<Matrix> next() override {
    while (layer_ > first_) {
      if (!part_) part_ = model_.layer_backward(context_, live_, layer_ - 1, std::move(gradient_));
      if (std::optional<Matrix> partial =
              model_.next_sum(*part_, Pass::backward, live_.batch, layer_ - 1, sums_, false)) {
        ++sums_;
        return partial;
      }
      sums_ = 0;
      gradient_ = part_->take_result();
      part_.reset();
      --layer_;
    }
    if (ended_ || first_ > 0) return std::nullopt;
    ended_ = true;
    model_.chunks_.leave(id_, live_.batch);
    model_.live_.erase(id_);
    if (model_.has_embedding()) gradient_.release();
    return std::nullopt;
  }

  Buffer take_result() override { return std::move(gradient_); }

 private:
  StageModel& model_;
  planner::MicrobatchId id_;
  Live& live_;
  LayerContext context_;
  Buffer gradient_;
  std::size_t first_, layer_;  // where it ends, and how many layers are still to come
  std::unique_ptr<ShardedPass> part_;
  std::int64_t sums_ = 0;
  bool ended_ = false;
};

void StageModel::begin(Adapter& adapter) const {
  for (const ParameterShape& parameter : adapter.table()) {
    if (parameter.initial != Initial::row_norms) continue;
    for (std::size_t i = 0; i < weights_.layers.size(); ++i)
      adapter.begin_magnitude(layers_.numbers()[i], parameter.module, weights_.layers[i].squares(parameter.module));
  }
}

std::unique_ptr<ShardedPass> StageModel::forward(planner::MicrobatchId id, Batch batch, Buffer input,
                                                 std::span<const std::unique_ptr<Adapter>> adapters,
                                                 std::span<const std::uint64_t> seeds, Objective& objective,
                                                 LayerRuns runs) {
  const auto [place, is_new] = live_.try_emplace(id);
  BRAID_CHECK(is_new == (runs.first == 0), "microbatch {} is under way already, or not yet", id);
  Live& live = place->second;
  if (is_new) {
    live.batch = std::move(batch);
    place_tokens(adapters, live.batch);
    live.earlier = chunks_.enter(id, live.batch);
    live.layers.resize(weights_.layers.size());
    live.objective = &objective;
  }
  return std::make_unique<Forward>(*this, live, context(adapters, seeds), places(runs), std::move(input));
}

std::unique_ptr<ShardedPass> StageModel::score(Batch batch, Buffer input,
                                               std::span<const std::unique_ptr<Adapter>> adapters,
                                               std::span<const std::uint64_t> seeds, Objective& objective,
                                               LayerRuns runs) {
  Live live{std::move(batch), {}, {}, {}, &objective};
  place_tokens(adapters, live.batch);
  live.earlier.resize(live.batch.sequences.size());
  live.layers.resize(weights_.layers.size());
  return std::make_unique<Score>(*this, std::move(live), context(adapters, seeds, true), places(runs),
                                 std::move(input));
}

std::unique_ptr<ShardedPass> StageModel::backward(planner::MicrobatchId id, Buffer gradient,
                                                  std::span<const std::unique_ptr<Adapter>> adapters,
                                                  std::span<const std::uint64_t> seeds, LayerRuns runs) {
  const auto found = live_.find(id);
  BRAID_CHECK(found != live_.end(), "microbatch {} is not under way", id);
  Live& live = found->second;
  const auto layers = places(runs);
  if (layers.second == live.layers.size()) {
    if (has_head()) {
      apply_late_factors(live);
      gradient = std::move(live.gradient);
    }
    take_key_gradients(live);
  }
  return std::make_unique<Backward>(*this, id, live, context(adapters, seeds), layers, std::move(gradient));
}

Buffer run_whole(const std::unique_ptr<ShardedPass>& pass) {
  BRAID_CHECK(!pass->next(), "a whole pass has a partial sum");
  return pass->take_result();
}

std::vector<float> StageModel::logits(Batch batch, std::span<const std::unique_ptr<Adapter>> adapters,
                                      std::span<const std::uint64_t> seeds) {
  BRAID_CHECK(has_embedding() && has_head() && shard_.count() == 1, "logits need the whole backbone on one stage");
  Live live{std::move(batch), {}, {}, {}, nullptr};
  place_tokens(adapters, live.batch);
  live.earlier.resize(live.batch.sequences.size());
  live.layers.resize(weights_.layers.size());
  const std::int64_t rows = live.batch.rows(), width = shard_.whole().hidden;
  Buffer hidden = embed(live.batch);
  for (std::size_t layer = 0; layer < live.layers.size(); ++layer)
    hidden = run_whole(layer_forward(context(adapters, seeds), live, layer, std::move(hidden)));
  const Buffer normed = pool_.take(rows * width);
  const Norm norm(shard_.whole(), kernels_);
  const Buffer statistics = pool_.take_f32(rows * norm.statistics());
  norm.forward(hidden.matrix(rows, width), weights_.final_norm, normed.matrix(rows, width),
               statistics.matrix(rows, norm.statistics()));
  const Buffer logits = pool_.take_f32(rows * shard_.whole().vocabulary);
  weights_.head->forward(normed.matrix(rows, width), logits.matrix(rows, shard_.whole().vocabulary));
  std::vector<float> result(static_cast<std::size_t>(logits.size()));
  pool_.device().download(logits.data(), std::as_writable_bytes(std::span(result)));
  pool_.device().wait();
  return result;
}

}  // namespace braid::exec
