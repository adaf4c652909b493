#include "exec/profiling/demand.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "exec/profiling/coverage.h"
#include "planner/window/program_stream.h"
#include "planner/window/window.h"

namespace braid::exec {
namespace {

using costmodel::AdapterShape;
using costmodel::CostModel;
using costmodel::Operator;
using costmodel::OperatorCall;
using costmodel::Pass;

constexpr std::array kPasses = {Pass::forward, Pass::backward};

/// So many windows of a plan are looked at, and so many of their microbatches.
constexpr std::int64_t kWindows = 6;
constexpr std::size_t kMostDemands = 64;

/// Embedding and head, with so many layers.
costmodel::StageShape with_layers(std::int64_t layers) {
  costmodel::StageShape stage;
  stage.layers = layers;
  stage.has_embedding = stage.has_head = true;
  return stage;
}

/// Whether all sequences are whole and of one length, padding counted.
bool alike(const MeasuredPoint& point) {
  const planner::Segment& first = point.microbatches.front().segments.front();
  const auto& segments = point.microbatches.front().segments;
  return point.microbatches.size() == 1 &&
         std::all_of(segments.begin(), segments.end(), [&](const planner::Segment& segment) {
           return segment.begin == 0 && !segment.continues && segment.chosen == 0 &&
                  segment.computed_tokens() == first.computed_tokens();
         });
}

/// Microbatches joined by samples that span them stand together.
std::vector<MeasuredPoint> points_of(const planner::Program& program, const planner::FixedPlan& fixed) {
  std::vector<MeasuredPoint> points;
  bool joins = false;
  for (const planner::Microbatch& microbatch : program.microbatches) {
    const auto spans = [](const planner::Segment& segment) { return segment.begin > 0; };
    joins = joins && std::any_of(microbatch.segments.begin(), microbatch.segments.end(), spans);
    if (!joins) {
      points.emplace_back();
      points.back().tp = fixed.deployment[static_cast<std::size_t>(microbatch.replica)].tp;
    }
    points.back().microbatches.push_back(microbatch);
    points.back().microbatches.back().id = std::ssize(points.back().microbatches) - 1;
    joins = std::any_of(microbatch.segments.begin(), microbatch.segments.end(),
                        [](const planner::Segment& segment) { return segment.continues; });
  }
  // A sample whose earlier chunks stand in no point before this one cannot be run.
  std::erase_if(points, [](const MeasuredPoint& point) {
    const auto& first = point.microbatches.front().segments;
    return std::any_of(first.begin(), first.end(), [](const planner::Segment& segment) { return segment.begin > 0; });
  });
  for (MeasuredPoint& point : points) point.attends = alike(point);
  return points;
}

/// The calls that a pass of the point is timed by; attention's where that tells of each sequence.
template <typename Visit>
void visit_measured(const MeasuredPoint& point, const MeasuringRules& rules, const CostModel& cost,
                    const Visit& visit) {
  const costmodel::StageShape stage = with_layers(point.layers > 0 ? point.layers : rules.layers);
  for (const Pass pass : kPasses) {
    for (const OperatorCall& call : calls_of(point, rules.backbone, stage, rules.adapters, pass, cost.storage()))
      if (call.op != Operator::attention || point.attends) visit(call);
  }
}

double pass_seconds(const MeasuredPoint& point, std::int64_t layers, const MeasuringRules& rules,
                    const CostModel& cost) {
  double seconds = 0;
  for (const Pass pass : kPasses)
    seconds += cost.estimate(calls_of(point, rules.backbone, with_layers(layers), rules.adapters, pass, cost.storage()))
                   .seconds;
  return seconds;
}

/// Sets how many layers a pass goes through; false where even two take far too long. Few counts, as each takes memory.
bool choose_layers(MeasuredPoint& point, const MeasuringRules& rules, const CostModel& cost) {
  const std::int64_t least = std::min<std::int64_t>(2, rules.layers);
  std::int64_t layers = rules.layers;
  while (layers > least && pass_seconds(point, layers, rules, cost) > rules.seconds_a_pass)
    layers = std::max(least, layers / 2);
  point.layers = static_cast<std::int32_t>(layers);
  return pass_seconds(point, layers, rules, cost) <= 2 * rules.seconds_a_pass;
}

/// The segments of the point's first microbatch, as many as a pass has time for; of a point in chunks nothing.
bool cut_to_time(MeasuredPoint& point, const MeasuringRules& rules, const CostModel& cost) {
  if (choose_layers(point, rules, cost)) return true;
  if (point.microbatches.size() > 1) return false;
  std::vector<planner::Segment>& segments = point.microbatches.front().segments;
  while (segments.size() > 1) {
    // Evenly from all tasks, which stand together.
    std::vector<planner::Segment> kept;
    for (std::size_t i = 0; i < segments.size(); i += 2) kept.push_back(segments[i]);
    segments = std::move(kept);
    if (choose_layers(point, rules, cost)) return true;
  }
  return false;
}

/// How much predicted time a kind of work has in the demand.
struct Asked {
  OperatorCall call;
  std::int32_t tp = 1;
  double share = 0;
};

/// Of all demands together, calls alike once.
std::vector<Asked> asked_of(std::span<const Demand> demands, const MeasuringRules& rules, const CostModel& cost) {
  using Key =
      std::tuple<std::int32_t, Operator, Pass, costmodel::OperatorShape, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, Asked> asked;
  for (const Demand& demand : demands) {
    std::vector<std::pair<OperatorCall, double>> calls;
    double sum = 0;
    for (const Pass pass : kPasses) {
      for (const OperatorCall& call : calls_of(demand.point, rules.backbone, with_layers(rules.backbone.layers),
                                               rules.adapters, pass, cost.storage())) {
        const double seconds = cost.estimate(call).seconds;
        calls.emplace_back(call, seconds);
        sum += seconds;
      }
    }
    for (const auto& [call, seconds] : calls) {
      Asked& one = asked[{demand.point.tp, call.op, call.pass, call.shape,
                          call.op == Operator::attention ? 0 : call.tokens, call.context, call.prefix}];
      one.call = call;
      one.tp = demand.point.tp;
      one.share += sum > 0 ? demand.share * seconds / sum : 0;
    }
  }
  std::vector<Asked> all;
  for (auto& [key, one] : asked) all.push_back(one);
  return all;
}

constexpr double kLengthStep = 1.41;

/// Sequences of the lengths that so many shards are asked for, whole and in chunks, of one task.
std::vector<MeasuredPoint> attention_candidates(std::span<const Asked> asked, std::span<const Demand> demands,
                                                std::int32_t tp) {
  double tokens = 0, shares = 0;
  for (const Demand& demand : demands) {
    if (demand.point.tp != tp) continue;
    tokens += demand.share * static_cast<double>(demand.point.tokens()) /
              static_cast<double>(demand.point.microbatches.size());
    shares += demand.share;
  }
  const auto usual = static_cast<std::int64_t>(shares > 0 ? tokens / shares : 0);
  std::map<std::int64_t, double> lengths, chunks;  // by length, of chunks by theirs
  std::int64_t longest = 0;
  for (const Asked& one : asked) {
    if (one.call.op != Operator::attention || one.tp != tp) continue;
    (one.call.prefix > 0 ? chunks : lengths)[one.call.context - one.call.prefix] += one.share;
    longest = std::max(longest, one.call.context);
  }
  std::vector<MeasuredPoint> points;
  const auto add = [&](std::int64_t context, std::int64_t chunk) {
    constexpr std::int64_t kFewestTokens = 256, kScored = 32;
    const std::int64_t sequences = std::max<std::int64_t>(1, std::max(usual, kFewestTokens) / context);
    for (const std::int64_t count : {sequences, std::max<std::int64_t>(1, sequences / 4)}) {
      MeasuredPoint& point = points.emplace_back(uniform_point(0, count * context, context, chunk, kScored));
      point.attends = true;
      point.tp = tp;
    }
  };
  double above = 0;
  for (const auto& [length, share] : lengths) {
    // What is often asked for as it stands, and else a step on.
    constexpr double kOften = 0.02;
    if (share > kOften || static_cast<double>(length) >= above || length == longest) {
      add(length, 0);
      above = kLengthStep * static_cast<double>(length);
    }
  }
  for (const auto& [length, share] : chunks) add((longest + length - 1) / length * length, length);
  return points;
}

struct Candidate {
  MeasuredPoint point;
  double seconds = 0;  // to measure it, a few times over
  std::vector<OperatorCall> calls;
};

std::vector<Candidate> candidates_of(std::span<const Demand> demands, std::span<const Asked> asked,
                                     const MeasuringRules& rules, const CostModel& cost) {
  std::set<std::int32_t> shards;
  for (const Demand& demand : demands) shards.insert(demand.point.tp);
  std::vector<MeasuredPoint> points;
  for (const std::int32_t tp : shards) {
    for (MeasuredPoint& point : attention_candidates(asked, demands, tp)) points.push_back(std::move(point));
  }
  for (const Demand& demand : demands) points.push_back(demand.point);
  std::vector<Candidate> candidates;
  for (MeasuredPoint& point : points) {
    if (!cut_to_time(point, rules, cost)) continue;
    // Warmed up, timed, and timed again in a later round.
    constexpr double kTimes = 3, kEach = 0.01;
    Candidate candidate{point, kEach + kTimes * pass_seconds(point, point.layers, rules, cost), {}};
    visit_measured(point, rules, cost, [&](const OperatorCall& call) { candidate.calls.push_back(call); });
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

/// What is not known of all that is asked, as a share of its predicted time.
double unknown(std::span<const Asked> asked, const Coverage& coverage) {
  double sum = 0;
  for (const Asked& one : asked) sum += one.share * coverage.distance(one.call);
  return sum;
}

/// The first of those that are worth as much comes first.
bool less_worth(const std::pair<double, std::size_t>& a, const std::pair<double, std::size_t>& b) {
  return std::pair(a.first, b.second) < std::pair(b.first, a.second);
}

}  // namespace

std::vector<Demand> demand_of(const planner::FixedPlan& fixed, const planner::WindowInput& input,
                              const CostModel& cost) {
  const costmodel::BackboneShape& backbone = input.workload.backbone;
  const std::vector<AdapterShape> adapters = planner::adapters_of(input.workload);
  const std::int64_t all = planner::window_count(fixed, input), count = std::min(all, kWindows);
  std::vector<MeasuredPoint> points;
  for (std::int64_t i = 0; i < count; ++i) {
    for (MeasuredPoint& point : points_of(planner::window_program(fixed, input, i * all / count), fixed))
      points.push_back(std::move(point));
  }
  const std::size_t step = std::max<std::size_t>(1, (points.size() + kMostDemands - 1) / kMostDemands);
  const MeasuringRules rules{backbone, adapters, backbone.layers};
  std::vector<Demand> demands;
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); i += step) {
    const double seconds = pass_seconds(points[i], backbone.layers, rules, cost);
    demands.push_back({std::move(points[i]), seconds});
    sum += seconds;
  }
  for (Demand& demand : demands) demand.share /= sum;
  return demands;
}

std::vector<MeasuredPoint> most_telling(std::span<const Demand> demands, const CostModel& cost,
                                        const MeasuringRules& rules) {
  /// Of the demanded time, that a point must tell to be worth measuring, and that need not be told.
  constexpr double kLeastGain = 0.002;
  Coverage coverage(cost.profile());
  const std::vector<Asked> asked = asked_of(demands, rules, cost);
  std::vector<Candidate> candidates = candidates_of(demands, asked, rules, cost);
  std::vector<MeasuredPoint> points;
  double left = rules.seconds, before = unknown(asked, coverage);
  // What a candidate tells only shrinks as others are chosen, so that one which is still the best needs no look at
  // those that were worse before.
  std::vector<std::pair<double, std::size_t>> worths;  // gain a second when last looked at, and whose
  for (std::size_t i = 0; i < candidates.size(); ++i) worths.emplace_back(std::numeric_limits<double>::infinity(), i);
  while (!worths.empty()) {
    std::pop_heap(worths.begin(), worths.end(), less_worth);
    const std::size_t place = worths.back().second;
    worths.pop_back();
    Candidate& candidate = candidates[place];
    if (candidate.seconds > left) continue;
    Coverage with = coverage;
    for (const OperatorCall& call : candidate.calls) with.add(call);
    const double then = unknown(asked, with), gain = before - then, worth = gain / candidate.seconds;
    if (gain < kLeastGain) continue;
    if (!worths.empty() && worth < worths.front().first) {
      worths.emplace_back(worth, place);
      std::push_heap(worths.begin(), worths.end(), less_worth);
      continue;
    }
    coverage = std::move(with);
    before = then;
    left -= candidate.seconds;
    points.push_back(std::move(candidate.point));
  }
  return points;
}

std::vector<MeasuredPoint> basic_points(std::span<const AdapterShape> adapters, std::int64_t longest_context,
                                        std::int32_t tp) {
  std::vector<MeasuredPoint> points;
  std::set<std::tuple<costmodel::AdapterMethod, std::array<bool, costmodel::kModuleCount>, std::int64_t,
                      std::array<std::int64_t, costmodel::kModuleCount>, bool>>
      kinds;
  constexpr std::int64_t kScored = 64, kContext = 64;
  for (std::size_t task = 0; task < adapters.size(); ++task) {
    const AdapterShape& adapter = adapters[task];
    if (!kinds.insert({adapter.method, adapter.targets, adapter.rank, adapter.module_ranks, adapter.dropout > 0})
             .second)
      continue;
    const auto add = [&](std::int64_t tokens) {
      points.push_back(
          uniform_point(static_cast<planner::TaskIndex>(task), tokens, std::min(tokens, kContext), 0, kScored));
    };
    if (points.empty()) add(512), add(19);
    add(91);
  }
  for (const std::int64_t context : {std::max<std::int64_t>(longest_context, 2), std::int64_t{8}}) {
    points.push_back(uniform_point(0, std::max<std::int64_t>(context, 256 / context * context), context, 0, kScored));
    points.back().attends = true;
  }
  for (MeasuredPoint& point : points) {
    point.needed = true;
    point.tp = tp;
  }
  return points;
}

}  // namespace braid::exec
