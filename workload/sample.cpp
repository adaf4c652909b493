#include "workload/sample.h"

#include <algorithm>
#include <utility>

namespace braid::workload {

void Sample::append(std::int32_t token, float weight) {
  const bool supervised = weight != 0;
  tokens.push_back(token);
  labels.push_back(supervised ? token : kUnsupervised);
  const bool usual = !supervised || weight == 1;
  if (weights.empty() && usual) return;
  weights.resize(tokens.size() - 1, 1.0F);
  weights.push_back(supervised ? weight : 1.0F);
}

void Sample::cut(std::size_t most) {
  tokens.resize(std::min(tokens.size(), most));
  labels.resize(tokens.size());
  if (!weights.empty()) weights.resize(tokens.size());
}

Sample pair_of(Sample chosen, const Sample& rejected) {
  Sample pair = std::move(chosen);
  pair.chosen = static_cast<std::int64_t>(pair.tokens.size());
  pair.tokens.insert(pair.tokens.end(), rejected.tokens.begin(), rejected.tokens.end());
  pair.labels.insert(pair.labels.end(), rejected.labels.begin(), rejected.labels.end());
  pair.weights.clear();
  return pair;
}

std::vector<Sample> sequences_of(const Sample& sample) {
  if (sample.chosen == 0) return {sample};
  Sample chosen, rejected;
  const auto tokens = sample.tokens.begin() + sample.chosen;
  const auto labels = sample.labels.begin() + sample.chosen;
  chosen.tokens.assign(sample.tokens.begin(), tokens), rejected.tokens.assign(tokens, sample.tokens.end());
  chosen.labels.assign(sample.labels.begin(), labels), rejected.labels.assign(labels, sample.labels.end());
  return {std::move(chosen), std::move(rejected)};
}

std::int64_t supervised_count(const Sample& sample) {
  const auto first = static_cast<std::size_t>(sample.chosen);
  std::int64_t count = 0;
  for (std::size_t i = 1; i < sample.labels.size(); ++i) count += i != first && sample.labels[i] != kUnsupervised;
  return count;
}

}  // namespace braid::workload
