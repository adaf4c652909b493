#include "workload/sample_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/random.h"

namespace braid::workload {
namespace {

// First words of keys, so that no two uses of one seed share random numbers.
constexpr std::uint64_t kShuffleKey = 0x65706f6368;
constexpr std::uint64_t kLengthsKey = 0x6c656e67746873;
constexpr std::uint64_t kHeldOutKey = 0x68656c64;

void shuffle_epoch(std::uint64_t seed, std::int64_t epoch, std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(mix_key(std::array{kShuffleKey, seed, static_cast<std::uint64_t>(epoch)}));
  shuffle(std::span<std::int64_t>(order), random);
}

std::int64_t batches_in_epoch(std::int64_t samples, std::int64_t global_batch_size) {
  return samples / global_batch_size + (samples % global_batch_size != 0 ? 1 : 0);
}

}  // namespace

namespace {

/// All that the distribution stands for.
std::vector<SampleSize> drawn_sizes(const Task& task) {
  BRAID_CHECK(task.lengths.has_value(), "task {} has data, not lengths", task.name);
  // The name too: tasks that leave the seed at its default are not to have the same lengths.
  std::vector<std::uint64_t> key = {kLengthsKey, task.seed};
  for (const char letter : task.name) key.push_back(static_cast<unsigned char>(letter));
  std::vector<SampleSize> sizes;
  LengthDistribution drawn = *task.lengths;
  drawn.samples *= task.objective.sequences();
  const std::vector<std::int64_t> lengths = draw_lengths(drawn, mix_key(key));
  const auto sequences = static_cast<std::size_t>(task.objective.sequences());
  for (std::size_t first = 0; first < lengths.size(); first += sequences) {
    const auto sample = std::span(lengths).subspan(first, sequences);
    if (task.on_too_long == OnTooLong::drop && std::ranges::max(sample) > task.max_length) continue;
    SampleSize size;
    for (const std::int64_t length : sample) {
      if (size.tokens > 0) size.chosen = size.tokens;
      size.tokens += std::min(length, task.max_length);
    }
    size.supervised = size.tokens - task.objective.sequences();
    sizes.push_back(size);
  }
  if (sizes.empty()) {
    throw error("task {}: every length drawn is more than max_length {}; raise it or set on_too_long to truncate",
                task.name, task.max_length);
  }
  return sizes;
}

std::vector<SampleSize> of_drawn(const Task& task, bool held_out_ones) {
  std::vector<SampleSize> sizes = drawn_sizes(task);
  if (!task.evaluation) return held_out_ones ? std::vector<SampleSize>() : sizes;
  const std::vector<bool> held = held_out(std::ssize(sizes), task);
  std::vector<SampleSize> some;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (held[i] == held_out_ones) some.push_back(sizes[i]);
  return some;
}

}  // namespace

std::vector<SampleSize> sample_sizes(const Task& task) {
  return of_drawn(task, false);
}

std::vector<SampleSize> held_out_sizes(const Task& task) {
  return of_drawn(task, true);
}

std::vector<bool> held_out(std::int64_t samples, const Task& task) {
  BRAID_CHECK(task.evaluation.has_value(), "task {} is not evaluated", task.name);
  const double fraction = task.evaluation->fraction;
  const std::int64_t count = std::llround(fraction * static_cast<double>(samples));
  if (count < 1 || count >= samples)
    throw error("task {}: of {} samples a fraction of {} to evaluate on leaves none to {}; give another, or a dataset",
                task.name, samples, fraction, count < 1 ? "evaluate on" : "learn from");
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(kHeldOutKey);
  shuffle(std::span<std::int64_t>(order), random);
  std::vector<bool> held(order.size(), false);
  for (std::int64_t i = 0; i < count; ++i) held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  return held;
}

std::int64_t steps_of(const Task& task, std::int64_t samples) {
  if (task.steps) return *task.steps;
  BRAID_CHECK(task.epochs.has_value(), "task {} has neither steps nor epochs", task.name);
  const std::int64_t batches = batches_in_epoch(samples, task.global_batch_size);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return *task.epochs > most / std::max<std::int64_t>(batches, 1) ? most : *task.epochs * batches;
}

SampleIndex::SampleIndex(std::span<const Task> tasks, std::vector<std::vector<SampleSize>> sizes,
                         std::vector<std::vector<SampleSize>> held_out) {
  held_out.resize(tasks.size());
  BRAID_CHECK(tasks.size() == sizes.size(), "{} tasks, sizes of {}", tasks.size(), sizes.size());
  tasks_.reserve(tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task& task = tasks[i];
    const auto samples = static_cast<std::int64_t>(sizes[i].size());
    BRAID_CHECK(samples > 0 && task.global_batch_size > 0, "task {} has no samples or no batch", task.name);
    TaskSamples entry;
    entry.sizes = std::move(sizes[i]);
    entry.held_out = std::move(held_out[i]);
    for (const SampleSize& size : entry.sizes)
      entry.total = {entry.total.tokens + size.tokens, entry.total.supervised + size.supervised,
                     entry.total.chosen + size.chosen};
    entry.seed = task.seed;
    entry.global_batch_size = task.global_batch_size;
    entry.batches_per_epoch = batches_in_epoch(samples, task.global_batch_size);
    entry.steps = steps_of(task, samples);
    tasks_.push_back(std::move(entry));
  }
}

const SampleIndex::TaskSamples& SampleIndex::at(int task) const {
  BRAID_CHECK(task >= 0 && task < tasks(), "task {} of {}", task, tasks());
  return tasks_[static_cast<std::size_t>(task)];
}

std::vector<SampleRef> SampleIndex::global_batch(int task, std::int64_t step) const {
  const TaskSamples& entry = at(task);
  BRAID_CHECK(step >= 0, "step {}", step);
  if (const std::int64_t epoch = step / entry.batches_per_epoch; epoch != entry.epoch) {
    entry.order.resize(entry.sizes.size());
    shuffle_epoch(entry.seed, epoch, entry.order);
    entry.epoch = epoch;
  }
  const std::int64_t first = step % entry.batches_per_epoch * entry.global_batch_size;
  const std::int64_t count = std::min(entry.global_batch_size, samples(task) - first);
  std::vector<SampleRef> batch;
  batch.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::int64_t sample = entry.order[static_cast<std::size_t>(i)];
    const SampleSize& size = entry.sizes[static_cast<std::size_t>(sample)];
    batch.push_back({sample, size.tokens, size.supervised, size.chosen});
  }
  return batch;
}

}  // namespace braid::workload
