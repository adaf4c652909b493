#pragma once

#include <cstdint>
#include <vector>

namespace braid::workload {

/// The label of a token that no loss is taken of (Hugging Face's convention).
inline constexpr std::int32_t kUnsupervised = -100;

/// One training sample. `labels` is as long as `tokens`; labels[i] is the token at i where it is supervised, and the
/// loss at position i - 1 predicts it. So labels[0] never counts.
struct Sample {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;

  void append(std::int32_t token, bool supervised) {
    tokens.push_back(token);
    labels.push_back(supervised ? token : kUnsupervised);
  }
  void append(const std::vector<std::int32_t>& more, bool supervised) {
    for (const std::int32_t token : more) append(token, supervised);
  }

  bool operator==(const Sample&) const = default;
};

/// What planning needs to know of a sample.
struct SampleSize {
  std::int64_t tokens = 0;
  std::int64_t supervised = 0;  ///< labels[1..] that are not kUnsupervised: the terms of its loss

  bool operator==(const SampleSize&) const = default;
};

}  // namespace braid::workload
