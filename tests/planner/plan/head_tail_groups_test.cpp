#include "planner/plan/head_tail_groups.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace braid::planner {
namespace {

/// The greatest sum of a pair, in the pairing of those `left` in which it is the least.
double least_greatest_pair(std::span<const double> lengths, std::vector<std::size_t> left) {
  if (left.empty()) return 0;
  const std::size_t first = left.back();
  left.pop_back();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::vector<std::size_t> others = left;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    least = std::min(least, std::max(lengths[first] + lengths[left[i]], least_greatest_pair(lengths, others)));
  }
  return least;
}

std::vector<double> drawn_lengths(std::size_t tasks) {
  std::vector<double> lengths(tasks);
  for (double& length : lengths) length = *rc::gen::inRange(1, 1000);
  return lengths;
}

RC_GTEST_PROP(HeadTailGroups, HoldEveryTaskOnceAndAboutAsManyEach, ()) {
  const auto tasks = *rc::gen::inRange<std::size_t>(1, 20);
  const auto groups = *rc::gen::inRange<std::size_t>(1, tasks + 1);
  const std::vector<std::vector<TaskIndex>> made =
      head_tail_groups(drawn_lengths(tasks), static_cast<std::int64_t>(groups));
  RC_ASSERT(made.size() == groups);
  std::vector<bool> seen(tasks, false);
  for (const std::vector<TaskIndex>& group : made) {
    RC_ASSERT(group.size() == tasks / groups || group.size() == (tasks + groups - 1) / groups);
    for (const TaskIndex task : group) {
      RC_ASSERT(!seen[static_cast<std::size_t>(task)]);
      seen[static_cast<std::size_t>(task)] = true;
    }
  }
}

RC_GTEST_PROP(HeadTailGroups, OfPairsTheGreatestSumIsTheLeastOfAllPairings, ()) {
  const auto pairs = *rc::gen::inRange<std::size_t>(1, 5);
  const std::vector<double> lengths = drawn_lengths(2 * pairs);
  double greatest = 0;
  for (const std::vector<TaskIndex>& pair : head_tail_groups(lengths, static_cast<std::int64_t>(pairs)))
    greatest =
        std::max(greatest, lengths[static_cast<std::size_t>(pair[0])] + lengths[static_cast<std::size_t>(pair[1])]);
  std::vector<std::size_t> all(lengths.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  RC_ASSERT(greatest == least_greatest_pair(lengths, all));
}

}  // namespace
}  // namespace braid::planner
