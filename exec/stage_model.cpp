#include "exec/stage_model.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "costmodel/work/memory.h"

namespace braid::exec {

using costmodel::Operator;
using costmodel::Pass;
using kernels::ConstMatrix;
using kernels::Matrix;

void check_family(const costmodel::BackboneShape& backbone) {
  if (!backbone.gated())
    throw error(
        "the layers of '{}' have no kernels in this build, which executes Llama, Mistral, Qwen2.5 and Qwen3; plan and "
        "simulate it "
        "with gpu: a40 or another GPU's name",
        backbone.name);
}

StageModel::StageModel(const costmodel::BackboneShape& backbone, planner::LayerRange layers, StageWeights weights,
                       BufferPool& pool, Probe& probe)
    : backbone_(backbone),
      layers_(layers),
      weights_(std::move(weights)),
      kernels_(pool.device().kernels()),
      pool_(pool),
      probe_(probe) {}

void StageModel::compile_layers() const {
  for (const LayerWeights& layer : weights_.layers) {
    for (const auto* linear : {&layer.qkv, &layer.o, &layer.gate_up, &layer.down}) (*linear)->compile();
  }
}

void StageModel::compile_head() const {
  if (weights_.head) weights_.head->compile();
}

Buffer StageModel::embed(const Batch& batch) const {
  Buffer hidden = pool_.take(batch.rows() * backbone_.hidden);
  const ConstMatrix table(weights_.embedding.data(), backbone_.vocabulary, backbone_.hidden);
  probe_.run({Operator::embedding, Pass::forward, {backbone_.vocabulary, backbone_.hidden}, batch.rows(), 0, 0, 1},
             [&] { kernels_.embedding_forward(table, batch.tokens, hidden.matrix(batch.rows(), backbone_.hidden)); });
  return hidden;
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

Buffer StageModel::through_layers(const LayerContext& layer_context, Live& live, Buffer hidden) {
  live.layers.resize(weights_.layers.size());
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    hidden = layer_forward(layer_context, weights_.layers[i], layers_.first + static_cast<std::int32_t>(i),
                           layer_batch(live, i), std::move(hidden), live.layers[i]);
  }
  return hidden;
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
        const std::int64_t numbers = 2 * earlier.batch.sequences[place.sequence].tokens * backbone_.kv_width();
        gradients = pool_.take(numbers);
        std::fill_n(gradients.data(), numbers, 0.0F);
      }
    }
  }
}

Buffer StageModel::forward(planner::MicrobatchId id, Batch batch, Buffer input,
                           std::span<const std::unique_ptr<Adapter>> adapters, std::span<const std::uint64_t> seeds,
                           std::span<const double> loss_scale, std::span<TaskLoss> losses) {
  BRAID_CHECK(!live_.contains(id), "microbatch {} is under way already", id);
  Live& live = live_[id];
  live.batch = std::move(batch);
  live.earlier = chunks_.enter(id, live.batch);
  Buffer hidden = has_embedding() ? embed(live.batch) : std::move(input);
  hidden = through_layers(context(adapters, seeds), live, std::move(hidden));
  if (!has_head()) return hidden;
  live.gradient = loss_gradient(live.batch, hidden, loss_scale, losses);
  return {};
}

Buffer StageModel::backward(planner::MicrobatchId id, Buffer gradient,
                            std::span<const std::unique_ptr<Adapter>> adapters, std::span<const std::uint64_t> seeds) {
  const auto found = live_.find(id);
  BRAID_CHECK(found != live_.end(), "microbatch {} is not under way", id);
  Live& live = found->second;
  if (has_head()) gradient = std::move(live.gradient);
  take_key_gradients(live);
  const LayerContext layer_context = context(adapters, seeds);
  for (std::size_t i = weights_.layers.size(); i-- > 0;) {
    gradient = layer_backward(layer_context, weights_.layers[i], layers_.first + static_cast<std::int32_t>(i),
                              layer_batch(live, i), std::move(gradient), live.layers[i]);
  }
  chunks_.leave(id, live.batch);
  live_.erase(found);
  if (has_embedding()) return {};
  return gradient;
}

/// The head sees only the rows that are scored, `kHeadRows` at a time; as it is frozen, its gradient is taken at once
/// and the logits are dropped.
Buffer StageModel::loss_gradient(const Batch& batch, const Buffer& hidden, std::span<const double> loss_scale,
                                 std::span<TaskLoss> losses) const {
  const std::int64_t width = backbone_.hidden, vocabulary = backbone_.vocabulary;
  const auto scored = static_cast<std::int64_t>(batch.scored_rows.size());
  Buffer gradient = pool_.take(batch.rows() * width);
  const Matrix all = gradient.matrix(batch.rows(), width);
  std::fill_n(all.data, batch.rows() * width, 0.0F);
  if (scored == 0) return gradient;
  const std::int64_t most = std::min(scored, costmodel::kHeadRows);
  const Buffer gathered = pool_.take(most * width), normed = pool_.take(most * width), back = pool_.take(most * width),
               scale = pool_.take(most);
  const Buffer logits = pool_.take(most * vocabulary);
  std::vector<float> row_scale(static_cast<std::size_t>(most)), row_loss(static_cast<std::size_t>(most));
  probe_.run({Operator::head_loss, Pass::forward, {width, vocabulary}, scored, 0, 0, 1}, [&] {
    for (std::int64_t first = 0; first < scored; first += most) {
      const std::int64_t rows = std::min(most, scored - first);
      const Matrix x = gathered.matrix(rows, width), y = normed.matrix(rows, width),
                   z = logits.matrix(rows, vocabulary), d = back.matrix(rows, width);
      const auto place = [&](std::int64_t i) { return static_cast<std::size_t>(first + i); };
      for (std::int64_t i = 0; i < rows; ++i) {
        std::memcpy(x.row(i), hidden.data() + batch.scored_rows[place(i)] * width,
                    static_cast<std::size_t>(width) * sizeof(float));
        row_scale[static_cast<std::size_t>(i)] =
            static_cast<float>(loss_scale[static_cast<std::size_t>(batch.scored_tasks[place(i)])]);
      }
      const std::span<float> norm_scale(scale.data(), static_cast<std::size_t>(rows));
      kernels_.rms_norm_forward(x, weights_.final_norm, static_cast<float>(backbone_.norm_epsilon), y, norm_scale);
      weights_.head->forward(y, z);
      kernels_.cross_entropy(
          z, std::span(batch.scored_labels).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)),
          std::span(row_scale).first(static_cast<std::size_t>(rows)),
          std::span(row_loss).first(static_cast<std::size_t>(rows)));
      weights_.head->backward(z, d);
      std::fill_n(y.data, rows * width, 0.0F);
      kernels_.rms_norm_backward(d, x, weights_.final_norm, norm_scale, y);
      for (std::int64_t i = 0; i < rows; ++i) {
        std::memcpy(all.row(batch.scored_rows[place(i)]), y.row(i), static_cast<std::size_t>(width) * sizeof(float));
        const auto task = static_cast<std::size_t>(batch.scored_tasks[place(i)]);
        losses[task].sum += static_cast<double>(row_loss[static_cast<std::size_t>(i)]) * loss_scale[task];
      }
    }
  });
  return gradient;
}

std::vector<float> StageModel::logits(Batch batch, std::span<const std::unique_ptr<Adapter>> adapters,
                                      std::span<const std::uint64_t> seeds) {
  BRAID_CHECK(has_embedding() && has_head(), "logits need the whole backbone on one stage");
  Live live{std::move(batch), {}, {}, {}};
  live.earlier.resize(live.batch.sequences.size());
  const std::int64_t rows = live.batch.rows();
  const Buffer hidden = through_layers(context(adapters, seeds), live, embed(live.batch));
  const Buffer normed = pool_.take(rows * backbone_.hidden), scale = pool_.take(rows);
  kernels_.rms_norm_forward(hidden.matrix(rows, backbone_.hidden), weights_.final_norm,
                            static_cast<float>(backbone_.norm_epsilon), normed.matrix(rows, backbone_.hidden),
                            scale.span());
  std::vector<float> result(static_cast<std::size_t>(rows * backbone_.vocabulary));
  weights_.head->forward(normed.matrix(rows, backbone_.hidden), Matrix(result.data(), rows, backbone_.vocabulary));
  return result;
}

}  // namespace braid::exec
