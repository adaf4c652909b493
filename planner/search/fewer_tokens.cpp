#include "planner/search/fewer_tokens.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"
#include "planner/search/less_work.h"

namespace braid::planner {
namespace {

using workload::Task;

constexpr std::int64_t kLengthSteps = 64;

/// A way to ask for less, by a number in [first, last]: the greater, the less is given up.
struct Reduction {
  std::int64_t first = 1;
  std::int64_t last = 0;
  std::function<std::optional<LessWork>(std::int64_t)> work;
  std::function<std::string(std::int64_t)> words;
};

std::int64_t longest(const workload::Workload& workload) {
  std::int64_t most = 0;
  for (const Task& task : workload.tasks) most = std::max(most, task.max_length);
  return most;
}

Reduction lower_lengths(const workload::Workload& workload, const workload::SampleIndex& samples) {
  const std::int64_t step = length_step(workload);
  const auto work = [&, step](std::int64_t steps) { return with_max_length(workload, samples, steps * step); };
  const auto words = [&, step, work](std::int64_t steps) {
    const std::optional<LessWork> less = work(steps);
    bool cuts = false;
    for (std::size_t t = 0; less && t < less->workload.tasks.size(); ++t)
      cuts = cuts || less->workload.tasks[t].on_too_long != workload.tasks[t].on_too_long;
    return fmt::format("lower max_length to {} where it is more{}", steps * step,
                       cuts ? ", with on_too_long: truncate" : "");
  };
  return {step == 1 ? 2 : 1, (longest(workload) - 1) / step, work, words};
}

Reduction lower_batches(const workload::Workload& workload, const workload::SampleIndex& samples) {
  std::int64_t largest = 1;
  for (const Task& task : workload.tasks) largest = std::max(largest, task.global_batch_size);
  const auto work = [&](std::int64_t most) { return with_global_batch(workload, samples, most); };
  const auto words = [](std::int64_t most) {
    return fmt::format("lower global_batch_size to {} where it is more", most);
  };
  return {1, largest - 1, work, words};
}

/// The shortest samples' first, then the smallest batches'.
std::vector<TaskIndex> lightest_first(const std::vector<Task>& tasks) {
  std::vector<TaskIndex> order(tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TaskIndex a, TaskIndex b) {
    const auto weight = [&](TaskIndex task) {
      const Task& one = tasks[static_cast<std::size_t>(task)];
      return std::pair(one.max_length, one.global_batch_size);
    };
    return weight(a) < weight(b);
  });
  return order;
}

std::string names_of(const std::vector<Task>& tasks, std::span<const TaskIndex> named) {
  std::vector<TaskIndex> sorted(named.begin(), named.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string_view> names;
  for (const TaskIndex task : sorted) names.push_back(tasks[static_cast<std::size_t>(task)].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Reduction fewer_tasks(const workload::Workload& workload, const workload::SampleIndex& samples) {
  const std::vector<TaskIndex> order = lightest_first(workload.tasks);
  const auto work = [&, order](std::int64_t kept) {
    return with_tasks(workload, samples, std::span(order).first(static_cast<std::size_t>(kept)));
  };
  const auto words = [&, order](std::int64_t kept) {
    const auto few = std::span(order).first(static_cast<std::size_t>(kept)),
               rest = std::span(order).subspan(few.size());
    return few.size() < rest.size() ? fmt::format("keep {} alone", names_of(workload.tasks, few))
                                    : fmt::format("leave out {}", names_of(workload.tasks, rest));
  };
  return {1, static_cast<std::int64_t>(order.size()) - 1, work, words};
}

/// The first number of [first, end) that does not hold, where none after it does either; else `end`.
template <typename Holds>
std::int64_t first_without(std::int64_t first, std::int64_t end, const Holds& holds) {
  while (first < end) {
    const std::int64_t middle = first + (end - first) / 2;
    if (holds(middle)) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

}  // namespace

std::int64_t length_step(const workload::Workload& workload) {
  const std::int64_t most = std::max<std::int64_t>(1, longest(workload) / kLengthSteps);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
}

std::optional<Loss> fewest_tokens_lost(const workload::Workload& workload, const workload::SampleIndex& samples,
                                       const FitsWork& fits) {
  const auto asked = static_cast<double>(tokens_of_step(workload));
  std::optional<Loss> least;
  for (const auto reduction_of : {lower_lengths, lower_batches, fewer_tasks}) {
    const Reduction reduction = reduction_of(workload, samples);
    const auto share = [&](std::int64_t number) {
      const std::optional<LessWork> less = reduction.work(number);
      return less ? 1 - static_cast<double>(tokens_of_step(less->workload)) / asked : 1;
    };
    const auto loses_more = [&](std::int64_t number) { return share(number) >= (least ? least->share : 1); };
    const auto fits_with = [&](std::int64_t number) {
      const std::optional<LessWork> less = reduction.work(number);
      return less && fits(less->workload, less->samples);
    };
    const std::int64_t end = reduction.last + 1;
    const std::int64_t first = first_without(reduction.first, end, loses_more);
    // Mostly not even the least fits: one question then.
    if (first >= end || !fits_with(first)) continue;
    const std::int64_t found = first_without(first + 1, end, fits_with) - 1;
    least = Loss{share(found), reduction.words(found)};
  }
  return least;
}

}  // namespace braid::planner
