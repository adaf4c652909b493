#include "planner/window/run_memory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "planner/window/program_stream.h"
#include "planner/window/window.h"

namespace braid::planner {
namespace {

/// What makes a window's memory: the larger, the fuller.
struct WindowSize {
  std::int64_t tokens = 0;   ///< of all its rows
  std::int64_t scored = 0;   ///< of the microbatch that scores the most
  std::int64_t last = 0;     ///< of a global batch's last one, which GPipe computes when all others are held
  std::int64_t largest = 0;  ///< computed tokens of the largest microbatch
};

/// Told by the samples alone where rows are padded, as microbatches are then of one size. Rows are split as
/// align_padded does; packs mix them, which is not looked at.
WindowSize size_of(const FixedPlan& fixed, const WindowInput& input, std::int64_t window) {
  WindowSize size;
  const auto parts = static_cast<std::size_t>(fixed.batching.microbatches) * fixed.deployment.size();
  std::map<std::pair<std::int32_t, std::int64_t>, std::vector<std::int64_t>> scored;  // by hTask and round, then part
  for (const WindowStep& step : window_steps(fixed, input, window)) {
    std::vector<std::int64_t>& mine = scored[{step.htask, step.round}];
    mine.resize(parts, 0);
    const std::vector<workload::SampleRef> samples = input.samples.global_batch(step.task, step.global_batch);
    for (std::size_t part = 0; part < parts; ++part) {
      for (std::size_t i = part * samples.size() / parts; i < (part + 1) * samples.size() / parts; ++i) {
        size.tokens += samples[i].tokens;
        mine[part] += samples[i].supervised;
      }
      size.scored = std::max(size.scored, mine[part]);
    }
  }
  for (const auto& [round, mine] : scored) {
    const auto last = std::find_if(mine.rbegin(), mine.rend(), [](std::int64_t rows) { return rows > 0; });
    if (last != mine.rend()) size.last = std::max(size.last, *last);
  }
  if (fixed.batching.padding != Padding::none) return size;
  size.largest = largest_microbatch(fixed, input, window);
  return size;
}

/// `count` windows from `first` on.
struct WindowSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

std::vector<std::int64_t> evenly(WindowSpan span, std::int64_t most) {
  std::vector<std::int64_t> windows;
  const std::int64_t looks = std::min(span.count, most);
  for (std::int64_t look = 0; look < looks; ++look) {
    const double share = static_cast<double>(look) / static_cast<double>(looks);
    windows.push_back(span.first + static_cast<std::int64_t>(share * static_cast<double>(span.count)));
  }
  return windows;
}

/// The `each` largest windows by every measure of WindowSize.
std::set<std::int64_t> largest_windows(const FixedPlan& fixed, const WindowInput& input, WindowSpan span,
                                       std::size_t each) {
  constexpr std::int64_t WindowSize::*kMeasures[] = {&WindowSize::tokens, &WindowSize::scored, &WindowSize::last,
                                                     &WindowSize::largest};
  std::vector<std::pair<WindowSize, std::int64_t>> sizes;
  for (const std::int64_t window : evenly(span, kScannedWindows))
    sizes.emplace_back(size_of(fixed, input, window), window);
  std::set<std::int64_t> windows;
  for (const auto measure : kMeasures) {
    const auto end = sizes.begin() + static_cast<std::ptrdiff_t>(std::min(each, sizes.size()));
    std::partial_sort(sizes.begin(), end, sizes.end(), [&](const auto& a, const auto& b) {
      return a.first.*measure != b.first.*measure ? a.first.*measure > b.first.*measure : a.second < b.second;
    });
    for (auto size = sizes.begin(); size != end; ++size) windows.insert(size->second);
  }
  return windows;
}

/// Walks what a run's windows hold.
class RunWalk {
 public:
  RunWalk(const FixedPlan& fixed, const WindowInput& input)
      : fixed_(fixed), input_(input), context_(memory_context(fixed, input.workload)) {}

  /// Looks at about `instructions` of a turn's.
  void walk_turn(WindowSpan turn, std::int64_t instructions) {
    const std::vector<Program> around = programs_around(fixed_, input_, turn.first + turn.count / 2);
    std::int64_t of_all = 0;
    for (const Program& program : around) of_all += static_cast<std::int64_t>(program.instruction_count());
    const std::int64_t programs = std::max<std::int64_t>(1, std::ssize(around));
    if (of_all / programs * turn.count <= instructions) {
      ProgramStream stream(fixed_, input_, turn.first, turn.first + turn.count);
      while (const std::optional<Slice> slice = stream.next()) walk(slice->program, slice->window);
    } else {
      constexpr std::int64_t kMeasures = 4;
      const std::int64_t each = std::max<std::int64_t>(1, instructions / std::max<std::int64_t>(1, kMeasures * of_all));
      for (const std::int64_t window : largest_windows(fixed_, input_, turn, static_cast<std::size_t>(each))) {
        for (const Program& program : programs_around(fixed_, input_, window)) walk(program, window);
      }
    }
    telling_.insert(turn.first);
    for (const auto& [stage, fullest] : std::exchange(fullest_, {})) telling_.insert(fullest.window);
  }

  RunMemory take() { return {std::move(ranks_), {telling_.begin(), telling_.end()}}; }

 private:
  struct Fullest {
    Bytes peak = 0;
    std::int64_t window = 0;
  };

  void walk(const Program& program, std::int64_t window) {
    const std::vector<StageMemory> stages = walk_memory(program, context_);
    ranks_.raise(program, stages);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      // Like replicas hold alike.
      Fullest& fullest = fullest_[fixed_.dispatch ? static_cast<std::int32_t>(s) : program.stages[s].stage];
      if (stages[s].peak() > fullest.peak) fullest = {stages[s].peak(), window};
    }
  }

  const FixedPlan& fixed_;
  const WindowInput& input_;
  MemoryContext context_;
  RankMemory ranks_;
  std::map<std::int32_t, Fullest> fullest_;  // of the turn, by stage, of all replicas where they are alike
  std::set<std::int64_t> telling_;
};

}  // namespace

void RankMemory::raise(const Program& program, std::span<const StageMemory> stages) {
  const auto raise_one = [](std::vector<Bytes>& of_ranks, std::int32_t rank, Bytes bytes) {
    of_ranks.resize(std::max(of_ranks.size(), static_cast<std::size_t>(rank) + 1));
    Bytes& most = of_ranks[static_cast<std::size_t>(rank)];
    most = std::max(most, bytes);
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    for (const std::int32_t rank : program.stages[s].ranks) {
      raise_one(peak, rank, stages[s].peak());
      raise_one(held, rank, stages[s].fixed());
    }
  }
}

RunMemory run_memory(const FixedPlan& fixed, const WindowInput& input, std::int64_t instructions) {
  const std::vector<Admission> course = course_of(fixed, input);
  const std::int64_t of_turn = instructions / std::max<std::int64_t>(1, std::ssize(course));
  RunWalk walk(fixed, input);
  std::int64_t first = 0;
  for (const Admission& turn : course) {
    if (turn.windows > 0) walk.walk_turn({first, turn.windows}, of_turn);
    first += turn.windows;
  }
  return walk.take();
}

}  // namespace braid::planner
