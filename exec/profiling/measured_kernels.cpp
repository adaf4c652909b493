#include "exec/profiling/measured_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/statistics.h"
#include "base/steady_clock.h"
#include "exec/profiling/probed_backbone.h"
#include "planner/plan/deployment.h"

namespace braid::exec {
namespace {

using costmodel::KernelChoice;
using costmodel::Operator;
using costmodel::OperatorShape;
using costmodel::Pass;

constexpr Operator kTried[] = {Operator::attention, Operator::linear};
/// Tokens of a pass, in sequences of a fourth each; a choice is made between these.
constexpr std::int64_t kSizes[] = {128, 512, 2048, 8192};
constexpr std::int64_t kSequences = 4;
/// Passes by either kernel, of which the median counts.
constexpr int kTrialRounds = 5;
/// A second kernel is chosen that takes at most so much of the first's time: less is noise, and would be chosen
/// otherwise the next time.
constexpr double kFaster = 0.97;
/// Of gradients' norm: what bf16 makes of two layers is below a hundredth.
constexpr double kMostDifference = 0.05;
/// The bottom one, whose backward pass is short, and one like all others.
constexpr std::int64_t kLayers = 2;

/// The second kernels of one operator for all calls, or for none, with all else as if they were there.
std::vector<KernelChoice> choices_of(Operator op, bool second) {
  std::vector<KernelChoice> choices = costmodel::all_of(op);
  if (!second)
    for (KernelChoice& choice : choices) choice.from = std::numeric_limits<std::int64_t>::max();
  return choices;
}

/// So many sequences of each length, by task.
using Lengths = std::vector<std::vector<std::int64_t>>;

/// One microbatch.
MeasuredPoint point_of(const Lengths& lengths) {
  MeasuredPoint point;
  planner::Microbatch& microbatch = point.microbatches.emplace_back();
  for (std::size_t task = 0; task < lengths.size(); ++task) {
    for (std::size_t i = 0; i < lengths[task].size(); ++i) {
      planner::Segment& segment = microbatch.segments.emplace_back();
      segment.task = static_cast<planner::TaskIndex>(task);
      segment.index = static_cast<std::int32_t>(i);
      segment.sample = segment.index;
      segment.end = static_cast<std::int32_t>(lengths[task][i]);
      segment.scored = segment.end - 1;
    }
  }
  return point;
}

/// All tasks' tokens, as even as may be, in sequences of a fourth of them all.
MeasuredPoint shared_point(std::size_t tasks, std::int64_t tokens) {
  Lengths lengths(tasks);
  const auto count = static_cast<std::int64_t>(tasks);
  for (std::int64_t task = 0; task < count; ++task) {
    std::int64_t left = tokens / count + (task < tokens % count ? 1 : 0);
    for (; left > 0; left -= std::min(left, tokens / kSequences))
      lengths[static_cast<std::size_t>(task)].push_back(std::min(left, tokens / kSequences));
  }
  return point_of(lengths);
}

/// Sequences that end anywhere in kernels' tiles, and more tiles than one.
MeasuredPoint mixed_point(std::size_t tasks) {
  constexpr std::int64_t kLengths[] = {129, 1, 65, 300, 63, 64};
  Lengths lengths(tasks);
  for (std::size_t i = 0; i < std::max(tasks, std::size(kLengths)); ++i)
    lengths[i % tasks].push_back(kLengths[i % std::size(kLengths)]);
  return point_of(lengths);
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); });
}

/// The longest sequence of such a point, which attention's choices go by.
std::int64_t longest_of(const MeasuredPoint& point) {
  std::int64_t longest = 0;
  for (const planner::Segment& segment : point.microbatches[0].segments)
    longest = std::max<std::int64_t>(longest, segment.end);
  return longest;
}

class Trial {
 public:
  Trial(const KernelTrial& trial, Communicator& communicator, kernels::Device& device)
      : trial_(trial), communicator_(communicator), device_(device) {}

  KernelTrialResult run() {
    for (int tp = 1; tp <= communicator_.size(); tp *= 2) {
      if (!planner::splits_heads(trial_.backbone, tp) || trial_.backbone.intermediate < tp) continue;
      backbone_.reset();
      for (const Operator op : kTried) {
        if (!on_all(device_.has_second_kernel(op))) continue;
        if (!agree(left() > 0)) {
          note("no time is left to try the GPU's second kernels of {}: it is not used; give more --profile-budget", op);
        } else if (const Verdict verdict = judge(op, tp); verdict != Verdict::alike) {
          note(verdict == Verdict::fails
                   ? "the GPU's second kernel of {} does not run: it is not used"
                   : "the GPU's second kernel of {} computes other gradients than its first: it is not used",
               op);
        } else {
          choose(op, shares_of(op));
        }
      }
    }
    backbone_.reset();
    device_.choose_kernels({});
    share();
    return std::move(result_);
  }

 private:
  using Key = std::tuple<Pass, OperatorShape>;
  /// By key and size: what the second kernel took of the first's time.
  using Shares = std::map<Key, std::map<std::int64_t, double>>;

  enum class Verdict { alike, other, fails };
  /// Of all ranks alike.
  Verdict judge(Operator op, int tp) {
    bool fails = false, alike = false;
    try {
      if (!backbone_) backbone_.emplace(trial_.backbone, kLayers, device_, tp, trial_.weights);
      alike = computes_alike(op);
    } catch (const Failure&) {
      fails = true;
      backbone_.reset();  // whose pass did not end
    }
    if (!on_all(!fails)) return Verdict::fails;
    return on_all(alike) ? Verdict::alike : Verdict::other;
  }

  /// Gradients after the second kernel are near those after the first; and those of a task that has lost its numbers
  /// are nobody else's.
  bool computes_alike(Operator op) {
    backbone_->set_adapters(trial_.adapters);
    backbone_->draw_parameters();
    const std::size_t tasks = trial_.adapters.size();
    const MeasuredPoint point = mixed_point(tasks);
    const auto gradients_by = [&](bool second) {
      device_.choose_kernels(choices_of(op, second));
      backbone_->take_gradients();
      backbone_->run(point, false);
      return backbone_->take_gradients();
    };
    const std::vector<std::vector<float>> first = gradients_by(false), second = gradients_by(true);
    double squares = 0, difference = 0;
    for (std::size_t task = 0; task < tasks; ++task) {
      for (std::size_t i = 0; i < first[task].size(); ++i) {
        squares += std::pow(first[task][i], 2);
        difference += std::pow(first[task][i] - second[task][i], 2);
      }
    }
    const bool near = difference <= std::pow(kMostDifference, 2) * squares;  // not where anything is NaN
    backbone_->poison(tasks - 1);
    const std::vector<std::vector<float>> beside = gradients_by(true);
    backbone_->draw_parameters();
    return near && std::ranges::all_of(std::span(beside).first(tasks - 1), all_finite);
  }

  Shares shares_of(Operator op) {
    Shares shares;
    double last_passes = 0;  // one by either kernel
    std::int64_t last_size = 0;
    for (const std::int64_t size : kSizes) {
      const double expected =
          last_size == 0 ? 0 : last_passes * static_cast<double>(size) / static_cast<double>(last_size);
      if (!agree(expected * (kTrialRounds + 1) <= left())) break;
      const MeasuredPoint point = shared_point(trial_.adapters.size(), size);
      std::map<Key, std::array<std::vector<double>, 2>> seconds;
      for (int round = -1; round < kTrialRounds; ++round) {  // the first warms up
        last_passes = 0;
        for (const bool second : {false, true}) {
          device_.choose_kernels(choices_of(op, second));
          communicator_.barrier();
          const ProbedBackbone::Passes passes = backbone_->run(point, true);
          last_passes += passes.forward_seconds + passes.backward_seconds;
          if (round < 0) continue;
          std::map<Key, double> of_pass;
          for (const auto* records : {&passes.forward, &passes.backward})
            for (const Probe::Record& record : *records)
              if (record.call.op == op) of_pass[{record.call.pass, record.call.shape}] += record.seconds;
          for (const auto& [key, sum] : of_pass) seconds[key][second ? 1 : 0].push_back(sum);
        }
      }
      last_size = size;
      const std::int64_t amount = op == Operator::attention ? longest_of(point) : point.tokens();
      for (const auto& [key, both] : seconds) shares[key][amount] = median(both[1]) / median(both[0]);
    }
    if (last_size >= kSizes[1]) return shares;
    note(
        "no time is left to try the GPU's second kernels of {} on more than a few tokens: it is not used; give more "
        "--profile-budget",
        op);
    return {};
  }

  /// From the least size on from which the second kernel is the faster of all that were measured.
  void choose(Operator op, const Shares& shares) {
    const std::vector<KernelChoice> possible = costmodel::all_of(op);
    for (const auto& [key, by_size] : shares) {
      const auto& [pass, shape] = key;
      if (std::ranges::find(possible, pass, &KernelChoice::pass) == possible.end()) continue;
      std::optional<std::int64_t> from;
      for (const auto& [size, share] : by_size) {
        if (share > kFaster)
          from.reset();
        else if (!from)
          from = size;
      }
      const KernelChoice choice{op, pass, shape, from.value_or(0)};
      const bool known = std::ranges::any_of(result_.choices, [&](const KernelChoice& other) {
        return other.op == op && other.pass == pass && other.shape == shape;
      });
      if (from && !known) result_.choices.push_back(choice);
    }
  }

  double left() const { return trial_.seconds - seconds_since(began_); }

  /// What rank 0 says.
  bool agree(bool value) {
    broadcast(value);
    return value;
  }
  bool on_all(bool value) {
    double others = value ? 0 : 1;
    communicator_.sum({&others, 1});
    return others == 0;
  }
  /// Once for all shards.
  void note(std::string_view text, Operator op) {
    const std::string made = fmt::format(fmt::runtime(text), name(op));
    if (std::ranges::find(result_.notes, made) == result_.notes.end()) result_.notes.push_back(made);
  }
  template <typename Value>
  void broadcast(Value& value) {
    communicator_.broadcast(std::as_writable_bytes(std::span(&value, 1)));
  }
  void share() {
    std::int64_t count = std::ssize(result_.choices);
    broadcast(count);
    result_.choices.resize(static_cast<std::size_t>(count));
    for (KernelChoice& choice : result_.choices) broadcast(choice);
  }

  const KernelTrial& trial_;
  Communicator& communicator_;
  kernels::Device& device_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  std::optional<ProbedBackbone> backbone_;
  KernelTrialResult result_;
};

}  // namespace

KernelTrialResult try_kernels(const KernelTrial& trial, Communicator& communicator, kernels::Device& device) {
  return Trial(trial, communicator, device).run();
}

}  // namespace braid::exec
