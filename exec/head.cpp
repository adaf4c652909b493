#include "exec/head.h"

#include <algorithm>

#include "costmodel/work/memory.h"
#include "exec/norm.h"

namespace braid::exec {
namespace {

using kernels::Matrix;

class HeadPass final : public ShardedPass {
 public:
  HeadPass(const HeadContext& context, const Batch& batch, const Buffer& hidden, Objective& objective, bool only_scores)
      : context_(context),
        kernels_(context.pool.device().kernels()),
        norm_(context.shard.whole(), kernels_),
        batch_(batch),
        hidden_(hidden),
        objective_(objective),
        only_scores_(only_scores),
        width_(context.shard.whole().hidden),
        vocabulary_(context.shard.vocabulary()),
        scored_(std::ssize(batch.scored)),
        most_(std::min(scored_, costmodel::kHeadRows)) {
    if (!only_scores) {
      gradient_ = context_.pool.take(batch.rows() * width_);
      kernels_.fill(0, gradient_.row());
    }
    if (scored_ == 0) return;
    gathered_ = context_.pool.take(most_ * width_), normed_ = context_.pool.take(most_ * width_);
    back_ = context_.pool.take(most_ * width_), statistics_ = context_.pool.take_f32(most_ * norm_.statistics());
    logits_ = context_.pool.take(most_ * vocabulary_.count());
    losses_ = context_.pool.take_f32(most_);
    if (shards() > 1) shares_ = context_.pool.take_f32(most_ * 3 * shards());
    const auto rows = static_cast<std::size_t>(most_);
    rows_of_hidden_.resize(rows), labels_.resize(rows), row_scale_.resize(rows);
  }

  std::optional<Matrix> next() override {
    while (first_ < scored_) {
      const std::shared_ptr<kernels::Event> begun = context_.probe.mark();
      const std::optional<Matrix> partial = step();
      if (begun) stretches_.push_back({begun, context_.probe.mark()});
      if (partial) return partial;
    }
    if (scored_ > 0)
      context_.probe.hear(
          {costmodel::Operator::head_loss, costmodel::Pass::forward, {width_, vocabulary_.count()}, scored_, 0, 0, 1},
          std::move(stretches_));
    for (Buffer* buffer : {&gathered_, &normed_, &back_, &statistics_, &logits_, &losses_, &shares_}) buffer->release();
    return std::nullopt;
  }

  Buffer take_result() override { return std::move(gradient_); }

 private:
  enum class Next { logits, gradient, norm };

  /// What comes next of the rows from first_ on.
  std::optional<Matrix> step() {
    rows_ = std::min(most_, scored_ - first_);
    switch (next_) {
      case Next::logits:
        next_ = Next::gradient;
        score();
        if (shards() == 1) return std::nullopt;
        return shares_.matrix(rows_, 3 * shards());
      case Next::gradient:
        next_ = Next::norm;
        go_back();
        if (shards() == 1 || only_scores_) return std::nullopt;
        return back_.matrix(rows_, width_);
      case Next::norm:
        next_ = Next::logits;
        add_up();
        first_ += rows_;
        return std::nullopt;
    }
    return std::nullopt;
  }

  int shards() const { return context_.shard.count(); }
  const ScoredRow& scored_row(std::int64_t i) const { return batch_.scored[static_cast<std::size_t>(first_ + i)]; }
  const SampleRows& sequence(std::int64_t i) const { return batch_.sequences[scored_row(i).sequence]; }
  Matrix matrix(const Buffer& buffer) const { return buffer.matrix(rows_, width_); }
  kernels::Vector losses() const { return losses_.vector().range(0, rows_); }
  Matrix logits() const { return logits_.matrix(rows_, vocabulary_.count()); }
  template <typename Number>
  std::span<const Number> of_rows(const std::vector<Number>& numbers) const {
    return std::span(numbers).first(static_cast<std::size_t>(rows_));
  }
  Matrix statistics() const { return statistics_.matrix(rows_, norm_.statistics()); }

  void score() {
    for (std::int64_t i = 0; i < rows_; ++i) {
      rows_of_hidden_[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(scored_row(i).row);
      row_scale_[static_cast<std::size_t>(i)] =
          static_cast<float>(objective_.factor(sequence(i))) * scored_row(i).weight;
      labels_[static_cast<std::size_t>(i)] = scored_row(i).label - static_cast<std::int32_t>(vocabulary_.first);
    }
    kernels_.embedding_forward(hidden_.matrix(batch_.rows(), width_), of_rows(rows_of_hidden_), false,
                               matrix(gathered_));
    norm_.forward(matrix(gathered_), context_.weights.final_norm, matrix(normed_), statistics());
    context_.weights.head->forward(matrix(normed_), logits());
    if (shards() == 1) return;
    kernels_.fill(0, shares_.row());
    const std::int64_t own = 3 * context_.shard.place();
    kernels_.cross_entropy_share(logits(), of_rows(labels_),
                                 shares_.matrix(rows_, 3 * shards()).column_range(own, own + 3));
  }

  void go_back() {
    if (shards() == 1) {
      kernels_.cross_entropy(logits(), of_rows(labels_), of_rows(row_scale_), losses());
    } else {
      kernels_.cross_entropy_of_shares(logits(), of_rows(labels_), of_rows(row_scale_),
                                       shares_.matrix(rows_, 3 * shards()), context_.shard.place(), losses());
    }
    if (!only_scores_) context_.weights.head->backward(logits(), matrix(back_));
  }

  void add_up() {
    std::vector<PendingLosses::Row> rows;
    for (std::int64_t i = 0; i < rows_; ++i) rows.push_back({sequence(i), scored_row(i).weight});
    context_.losses.add(losses(), std::move(rows), objective_);
    if (only_scores_) return;
    const Matrix sums = matrix(normed_);
    kernels_.fill(0, sums);
    norm_.backward(matrix(back_), matrix(gathered_), context_.weights.final_norm, statistics(), sums);
    kernels_.scatter_rows(sums, of_rows(rows_of_hidden_), gradient_.matrix(batch_.rows(), width_));
  }

  HeadContext context_;
  const kernels::Kernels& kernels_;
  Norm norm_;
  const Batch& batch_;
  const Buffer& hidden_;
  Objective& objective_;
  bool only_scores_;
  std::int64_t width_;
  Share vocabulary_;
  std::int64_t scored_, most_;
  Buffer gradient_, gathered_, normed_, back_, statistics_, logits_, losses_, shares_;
  std::vector<std::int32_t> rows_of_hidden_;
  std::vector<std::int32_t> labels_;  // counted from the shard's first
  std::vector<float> row_scale_;
  std::int64_t first_ = 0, rows_ = 0;  // of the scored rows, those under way
  Next next_ = Next::logits;
  std::vector<Probe::Stretch> stretches_;  // of the stream that the pass has taken
};

}  // namespace

std::unique_ptr<ShardedPass> head_pass(const HeadContext& context, const Batch& batch, const Buffer& hidden,
                                       Objective& objective, bool only_scores) {
  return std::make_unique<HeadPass>(context, batch, hidden, objective, only_scores);
}

}  // namespace braid::exec
