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
constexpr std::int64_t kSequences = 4;
/// Launches are timed where they come thick and fast: so many layers of so many microbatches one after another, with a
/// head that takes no time.
constexpr std::int64_t kLaunchedLayers = 4, kLaunchedMicrobatches = 2, kMostLaunchedTokens = 8192;
constexpr std::int64_t kLittleVocabulary = 256;
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

/// What launches are timed on, of microbatches of so many tokens and somewhat fewer: no two are alike in a run.
MeasuredPoint launched_point(std::size_t tasks, std::int64_t tokens) {
  MeasuredPoint point;
  const std::int64_t count = std::clamp<std::int64_t>(kMostLaunchedTokens / tokens, 1, kLaunchedMicrobatches);
  for (std::int64_t i = 0; i < count; ++i)
    point.microbatches.push_back(shared_point(tasks, tokens - i * tokens / 16).microbatches.front());
  std::int32_t sample = 0;
  for (planner::Microbatch& microbatch : point.microbatches)
    for (planner::Segment& segment : microbatch.segments) segment.index = segment.sample = sample++;
  return point;
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

/// In notes.
std::string said(Operator op) {
  if (op == Operator::launch) return "launching layers as CUDA graphs";
  return fmt::format("the GPU's second kernel of {}", name(op));
}

class Trial {
 public:
  Trial(const KernelTrial& trial, Communicator& communicator, kernels::Device& device)
      : trial_(trial), communicator_(communicator), device_(device) {}

  KernelTrialResult run() {
    for (int tp = 1; tp <= communicator_.size(); tp *= 2) {
      if (!planner::splits_heads(trial_.backbone, tp) || trial_.backbone.intermediate < tp) continue;
      backbone_.reset();
      for (const Operator op : kTried) try_out(op, tp, trial_.backbone, kLayers);
    }
    // Last, of what then is launched. Shards launch no more than whole layers, which compute for longer.
    backbone_.reset();
    costmodel::BackboneShape layers = trial_.backbone;
    layers.vocabulary = std::min(layers.vocabulary, kLittleVocabulary);
    try_out(Operator::launch, 1, layers, kLaunchedLayers);
    backbone_.reset();
    device_.choose_kernels({});
    share();
    return std::move(result_);
  }

 private:
  using Key = std::tuple<Pass, OperatorShape>;
  /// By key and size: what the second kernel took of the first's time.
  using Shares = std::map<Key, std::map<std::int64_t, double>>;

  void try_out(Operator op, int tp, const costmodel::BackboneShape& backbone, std::int64_t layers) {
    if (!on_all(device_.has_second_kernel(op))) return;
    if (!agree(left() > 0)) return note("no time is left to try {}: it is not used; give more --profile-budget", op);
    switch (judge(op, tp, backbone, layers)) {
      case Verdict::alike:
        return choose(op, shares_of(op));
      case Verdict::fails:
        return note("{} does not run: it is not used", op);
      case Verdict::other:
        return note("{} computes other gradients than without: it is not used", op);
    }
  }

  enum class Verdict { alike, other, fails };
  /// Of all ranks alike.
  Verdict judge(Operator op, int tp, const costmodel::BackboneShape& backbone, std::int64_t layers) {
    bool fails = false, alike = false;
    try {
      if (!backbone_) backbone_.emplace(backbone, layers, device_, tp, trial_.weights);
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
      use(op, second);
      backbone_->run(point, false);  // what is new may go another way the first time
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

  /// All else as it was found to be faster where launches are tried, and by first kernels where others are.
  void use(Operator op, bool second) {
    std::vector<KernelChoice> choices = choices_of(op, second);
    if (op == Operator::launch) choices.insert(choices.end(), result_.choices.begin(), result_.choices.end());
    device_.choose_kernels(std::move(choices));
  }

  /// Seconds of a pass by what a choice is made for: operators' of that kind, or of launches all of each direction.
  std::map<Key, double> seconds_of(Operator op, const MeasuredPoint& point) {
    const bool launches = op == Operator::launch;
    const ProbedBackbone::Passes passes = backbone_->run(point, !launches);
    last_passes_ = passes.forward_seconds + passes.backward_seconds;
    if (launches)
      return {{{Pass::forward, {}}, passes.forward_seconds}, {{Pass::backward, {}}, passes.backward_seconds}};
    std::map<Key, double> seconds;
    for (const auto* records : {&passes.forward, &passes.backward})
      for (const Probe::Record& record : *records)
        if (record.call.op == op) seconds[{record.call.pass, record.call.shape}] += record.seconds;
    return seconds;
  }

  Shares shares_of(Operator op) {
    Shares shares;
    double last_passes = 0;  // one by either kernel
    std::int64_t last_size = 0;
    const std::size_t tasks = trial_.adapters.size();
    for (const std::int64_t size : trial_.sizes) {
      const double expected =
          last_size == 0 ? 0 : last_passes * static_cast<double>(size) / static_cast<double>(last_size);
      if (!agree(expected * (kTrialRounds + 1) <= left())) break;
      const MeasuredPoint point = op == Operator::launch ? launched_point(tasks, size) : shared_point(tasks, size);
      std::map<Key, std::array<std::vector<double>, 2>> seconds;
      for (int round = -1; round < kTrialRounds; ++round) {  // the first warms up
        last_passes = 0;
        for (const bool second : {false, true}) {
          use(op, second);
          communicator_.barrier();
          std::map<Key, double> of_pass;
          bool fails = false;
          try {
            of_pass = seconds_of(op, point);
          } catch (const Failure&) {
            fails = true;
          }
          // Of larger microbatches than fit memory nothing is told, and none are planned.
          if (!on_all(!fails)) {
            backbone_.reset();  // whose pass did not end
            if (last_size >= trial_.sizes.at(1)) return shares;
            note("{} does not run: it is not used", op);
            return {};
          }
          last_passes += last_passes_;
          if (round < 0) continue;
          for (const auto& [key, sum] : of_pass) seconds[key][second ? 1 : 0].push_back(sum);
        }
      }
      last_size = size;
      const std::int64_t amount = op == Operator::attention ? longest_of(point) : size;
      for (const auto& [key, both] : seconds) shares[key][amount] = median(both[1]) / median(both[0]);
    }
    if (last_size >= trial_.sizes.at(1)) return shares;
    note("no time is left to try {} on more than a few tokens: it is not used; give more --profile-budget", op);
    return {};
  }

  /// Second kernels are the better the larger calls are, and graphs the smaller: the sizes for which it is the faster
  /// as far as all that were measured say so.
  std::optional<std::pair<std::int64_t, std::int64_t>> range_of(Operator op,
                                                                const std::map<std::int64_t, double>& shares) const {
    const KernelChoice all;
    std::optional<std::pair<std::int64_t, std::int64_t>> range;
    if (op == Operator::launch) {
      bool faster = true;
      for (const auto& [size, share] : shares) {
        faster = faster && share <= kFaster;
        if (faster) range.emplace(all.from, size);
      }
      if (faster && range && range->second == trial_.sizes.back()) range->second = all.to;
      return range;
    }
    for (const auto& [size, share] : shares) {
      if (share > kFaster)
        range.reset();
      else if (!range)
        range.emplace(size, all.to);
    }
    return range;
  }

  void choose(Operator op, const Shares& shares) {
    const std::vector<KernelChoice> possible = costmodel::all_of(op);
    for (const auto& [key, by_size] : shares) {
      const auto& [pass, shape] = key;
      if (std::ranges::find(possible, pass, &KernelChoice::pass) == possible.end()) continue;
      const auto range = range_of(op, by_size);
      if (!range) continue;
      const KernelChoice choice{op, pass, shape, range->first, range->second};
      const bool known = std::ranges::any_of(result_.choices, [&](const KernelChoice& other) {
        return other.op == op && other.pass == pass && other.shape == shape;
      });
      if (!known) result_.choices.push_back(choice);
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
    const std::string made = fmt::format(fmt::runtime(text), said(op));
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
  double last_passes_ = 0;  // seconds of the last forward and backward pass
  KernelTrialResult result_;
};

}  // namespace

KernelTrialResult try_kernels(const KernelTrial& trial, Communicator& communicator, kernels::Device& device) {
  return Trial(trial, communicator, device).run();
}

}  // namespace braid::exec
