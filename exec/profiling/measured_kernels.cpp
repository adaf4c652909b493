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

constexpr Operator kTried[] = {Operator::linear, Operator::attention};
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

/// All tasks' tokens in one microbatch, as even as may be.
MeasuredPoint shared_point(std::size_t tasks, std::int64_t tokens) {
  MeasuredPoint point;
  const auto count = static_cast<std::int64_t>(tasks);
  for (std::int64_t task = 0; task < count; ++task) {
    const std::int64_t own = tokens / count + (task < tokens % count ? 1 : 0);
    if (own == 0) continue;
    const std::int64_t context = std::max<std::int64_t>(tokens / kSequences, 1);
    MeasuredPoint of_task = uniform_point(static_cast<planner::TaskIndex>(task), own, context, context, own);
    if (point.microbatches.empty()) {
      point = std::move(of_task);
    } else {
      std::vector<planner::Segment>& segments = point.microbatches[0].segments;
      const std::vector<planner::Segment>& added = of_task.microbatches[0].segments;
      segments.insert(segments.end(), added.begin(), added.end());
    }
  }
  return point;
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
    for (int tp = 1; tp <= communicator_.size(); tp *= 2)
      if (planner::splits_heads(trial_.backbone, tp) && trial_.backbone.intermediate >= tp) run_shards(tp);
    device_.choose_kernels({});
    share();
    return std::move(result_);
  }

 private:
  using Key = std::tuple<Pass, OperatorShape>;
  /// By key and size: what the second kernel took of the first's time.
  using Shares = std::map<Key, std::map<std::int64_t, double>>;

  void run_shards(int tp) {
    ProbedBackbone backbone(trial_.backbone, kLayers, device_, tp, trial_.weights);
    backbone.set_adapters(trial_.adapters);
    backbone.draw_parameters();
    for (const Operator op : kTried) {
      if (!device_.has_second_kernel(op)) continue;
      if (!computes_alike(backbone, op)) {
        if (tp == 1)
          result_.notes.push_back(fmt::format(
              "the GPU's second kernel of {} computes other gradients than its first: it is not used", name(op)));
        continue;
      }
      choose(op, shares_of(backbone, op));
    }
  }

  bool computes_alike(ProbedBackbone& backbone, Operator op) {
    const MeasuredPoint point = shared_point(trial_.adapters.size(), kSizes[0] * 3 - 7);
    std::array<std::vector<float>, 2> gradients;
    for (const bool second : {false, true}) {
      device_.choose_kernels(choices_of(op, second));
      backbone.take_gradients();
      backbone.run(point, false);
      gradients[second ? 1 : 0] = backbone.take_gradients();
    }
    double squares = 0, difference = 0;
    for (std::size_t i = 0; i < gradients[0].size(); ++i) {
      squares += std::pow(gradients[0][i], 2);
      difference += std::pow(gradients[0][i] - gradients[1][i], 2);
    }
    return difference <= std::pow(kMostDifference, 2) * squares;  // false where anything is NaN
  }

  Shares shares_of(ProbedBackbone& backbone, Operator op) {
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
          const ProbedBackbone::Passes passes = backbone.run(point, true);
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
    return shares;
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
  KernelTrialResult result_;
};

}  // namespace

KernelTrialResult try_kernels(const KernelTrial& trial, Communicator& communicator, kernels::Device& device) {
  const bool any = std::ranges::any_of(kTried, [&](Operator op) { return device.has_second_kernel(op); });
  return any ? Trial(trial, communicator, device).run() : KernelTrialResult{};
}

}  // namespace braid::exec
