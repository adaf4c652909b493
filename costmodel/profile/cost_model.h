#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "costmodel/gpu/roofline.h"
#include "costmodel/profile/best_rates.h"
#include "costmodel/profile/profile.h"

namespace braid::costmodel {

/// Predicted time, and how much of it rests on points outside what was measured.
struct Estimate {
  double seconds = 0;
  double extrapolated_seconds = 0;

  Estimate& operator+=(const Estimate& other) {
    seconds += other.seconds;
    extrapolated_seconds += other.extrapolated_seconds;
    return *this;
  }
};

/// What one call adds to a pass, for those who put many passes together of the same calls; its `count` applied.
struct CallPrice {
  double seconds = 0;      ///< as a part of a pass
  double launches = 0;     ///< where the roofline answers; else what the host does was measured with the rest
  double utilization = 1;  ///< u of MuxTune Eq. 3; what was measured says nothing of it and is taken to be full
  /// Of attention, whose sequences share a launch: what adds up. What was measured is taken for products.
  AttentionWork attention = {};
};

/// What some calls of one Forward or Backward come to; parts of a pass add up.
struct PassWork {
  Estimate calls;
  double host_seconds = 0;    ///< to launch what the roofline answers
  double device_seconds = 0;  ///< of that

  PassWork& operator+=(const PassWork& other);
  /// With the time that the host keeps the GPU waiting: it starts kernels ahead of the GPU, at a cost for each, so that
  /// small work is bound by it.
  Estimate total() const;
};

/// What the curves through a profile's points are: a fit that never falls with more work (least squares of relative
/// errors), which is what plans are made with, or the measured points as they are.
enum class Curves { isotonic, raw };

/// The point that the isotonic fit moves the furthest.
struct Departure {
  Operator op = Operator::linear;
  Pass pass = Pass::forward;
  OperatorShape shape{};
  std::int64_t chunk = 0;  ///< attention after a prefix: tokens of a chunk; else 0
  std::int64_t work = 0;   ///< tokens; attention: the context's length, of a chunk the prefix's
  double share = 0;        ///< fitted over measured, less 1
};

/// What work costs on the machine of a profile: the one thing the planner asks. Safe for concurrent use.
///
/// Between measured points time is linear in tokens (attention: time over the context's length is, so that it may be
/// quadratic; of chunks time is linear in the prefix, and time over the chunk's length in that length); adapters are
/// linear in rank too. Chunks of which none was measured cost their share of the causal triangle. Before the first
/// point it stays level (attention: in proportion); beyond the last it goes on as the roofline of the profile's device
/// does, or without one along the last slope (attention: in proportion to the square), yet no product gets faster than
/// the best rate that was measured of any, and nothing moves its bytes faster than the best bandwidth that was. What
/// has no entry is answered by the roofline, else it is an Error that lists what is there. All that was not measured
/// counts as extrapolated.
class CostModel {
 public:
  explicit CostModel(Profile profile, Curves curves = Curves::isotonic);

  const Profile& profile() const { return profile_; }
  /// How whoever runs passes on that machine stores things.
  const Storage& storage() const { return storage_; }
  /// How many times as long compute takes beside a collective: the profile's, else by its device; 1 without one.
  double overlap_slowdown() const { return overlap_slowdown_; }
  const Departure& largest_departure() const { return largest_departure_; }

  /// One operator by itself.
  Estimate estimate(const OperatorCall& call) const;
  /// Of one Forward or Backward: the sum, with adapters beside one another by MuxTune's Eq. 3 and all sequences of a
  /// launch of attention together, and what was measured longer by the profile's `pass_skew`.
  PassWork work(std::span<const OperatorCall> calls) const;
  Estimate estimate(std::span<const OperatorCall> calls) const { return work(calls).total(); }

  CallPrice price(const OperatorCall& call) const;
  /// How long sequences attend whose prices add up to that, in each of `layers` layers.
  double attention_seconds(const AttentionWork& work, double layers) const;

  /// Whether the profile has entries of it, of whatever shape.
  bool measured(Operator op) const;
  /// The shape of a collective of these ranks: how many, and over how many nodes.
  OperatorShape group_shape(Operator op, std::span<const std::int32_t> ranks) const;

 private:
  struct Point {
    double work = 0;  // tokens, or context for attention, or prefix for chunks
    double seconds = 0;
  };
  using Curve = std::vector<Point>;
  struct Key {
    Operator op = Operator::linear;
    Pass pass = Pass::forward;
    OperatorShape shape{};
    std::int64_t chunk = 0;  // tokens after a prefix; 0: whole sequences, and whatever is not attention
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  /// An answer, and whether the roofline gave it.
  struct Answer {
    Estimate once;
    bool derived = false;
    double launches = 0;           ///< then
    double utilization = 1;        ///< then, save for messages and collectives
    AttentionWork attention = {};  ///< then, of attention
  };

  void fit(const Key& key, Curve& points);
  const Curve* find(const OperatorCall& call) const;
  Answer answer(const OperatorCall& call) const;
  double collective(const OperatorCall& call) const;
  Estimate on_curve(const Curve& points, const OperatorCall& call, double work) const;
  double beyond(const Curve& points, const OperatorCall& call, double work) const;
  double least_seconds(const OperatorCall& call, double tokens) const;
  /// Calls whose kernels share launches; mostly one.
  struct Group {
    Estimate together;
    bool derived = false;  ///< the roofline answered
    double launches = 0;
  };

  Group side_by_side(std::span<const OperatorCall> calls) const;
  Group sequences_together(std::span<const OperatorCall> calls) const;
  std::optional<Estimate> adapter_between_ranks(const OperatorCall& call) const;
  Estimate attention(const Curve& points, const OperatorCall& call) const;
  std::optional<Estimate> between_chunks(const Curve& whole, const OperatorCall& call) const;
  Estimate chunk(const Curve& whole, const OperatorCall& call, std::int64_t measured) const;
  [[noreturn]] void refuse(const OperatorCall& call) const;

  Profile profile_;
  Storage storage_;
  double overlap_slowdown_ = 1;
  Rates best_rates_;
  std::unordered_map<Key, Curve, KeyHash> curves_;
  std::unordered_map<Key, std::vector<std::int64_t>, KeyHash> chunks_;  // that were measured, by whole sequences' key
  std::optional<Roofline> roofline_;
  Departure largest_departure_;
};

}  // namespace braid::costmodel
