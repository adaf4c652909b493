#pragma once

#include <cstdint>
#include <vector>

namespace braid::workload {

/// The label of a token that no loss is taken of (Hugging Face's convention).
inline constexpr std::int32_t kUnsupervised = -100;

/// One training sample: a sequence, or a pair of them, of which the chosen one stands before the rejected one. `labels`
/// is as long as `tokens`; labels[i] is the token at i where it is supervised, and the loss at position i - 1 predicts
/// it. So the label of a sequence's first token never counts.
struct Sample {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  /// What each token's loss counts, below 0 too; empty: 1 each. Where it is 0 the label is kUnsupervised.
  std::vector<float> weights;
  std::int64_t chosen = 0;  ///< tokens of the chosen sequence of a pair; 0: one sequence alone

  void append(std::int32_t token, float weight);
  void append(const std::vector<std::int32_t>& more, float weight) {
    for (const std::int32_t token : more) append(token, weight);
  }
  float weight(std::size_t i) const { return weights.empty() ? 1.0F : weights[i]; }
  /// Its first tokens alone, where there are more.
  void cut(std::size_t most);

  bool operator==(const Sample&) const = default;
};

/// A pair's two sequences, of whose weights nothing is taken.
Sample pair_of(Sample chosen, const Sample& rejected);
/// The sequences of a sample, each as one.
std::vector<Sample> sequences_of(const Sample& sample);
/// Labels but kUnsupervised, without the first of each sequence: the terms of its loss.
std::int64_t supervised_count(const Sample& sample);

/// What planning needs to know of a sample.
struct SampleSize {
  std::int64_t tokens = 0;
  std::int64_t supervised = 0;  ///< the terms of its loss
  std::int64_t chosen = 0;      ///< tokens of the chosen sequence of a pair; 0: one sequence alone

  bool operator==(const SampleSize&) const = default;
};

}  // namespace braid::workload
