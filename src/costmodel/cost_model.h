#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "costmodel/profile.h"
#include "costmodel/roofline.h"

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

/// What work costs on the machine of a profile: the one thing the planner asks.
///
/// Between measured points time is linear in tokens (attention: in the context length); adapters are linear in rank
/// too. Beyond the last point it goes on in proportion to the work, before the first it stays level; both count as
/// extrapolated. What has no entry is answered by the roofline of the profile's device, where it names one, and counts
/// as extrapolated too; else it is an Error that lists what is there.
class CostModel {
 public:
  explicit CostModel(Profile profile);

  const Profile& profile() const { return profile_; }
  Estimate estimate(const OperatorCall& call) const;
  /// Of one Forward or Backward: the sum, with adapters beside one another by MuxTune's Eq. 3, and the time that the
  /// host keeps the GPU waiting: it starts kernels ahead of the GPU, at a cost for each, so that small work is bound by
  /// it.
  Estimate estimate(std::span<const OperatorCall> calls) const;

  /// The shape of a collective of these ranks: how many, and over how many nodes.
  OperatorShape group_shape(Operator op, std::span<const std::int32_t> ranks) const;

 private:
  struct Point {
    double work = 0;  // tokens, or context for attention
    double seconds = 0;
  };
  using Curve = std::vector<Point>;
  using Key = std::tuple<Operator, Pass, OperatorShape>;

  const Curve& curve(const OperatorCall& call) const;
  /// True for what has no entry and is answered by the roofline.
  bool is_derived(const OperatorCall& call) const;
  double derived_seconds(const OperatorCall& call) const;
  Estimate side_by_side(std::span<const OperatorCall> calls) const;
  Estimate adapter_between_ranks(const OperatorCall& call) const;
  Estimate attention(const OperatorCall& call) const;
  std::string known_shapes(Operator op) const;

  Profile profile_;
  std::map<Key, Curve> curves_;
  std::optional<Roofline> roofline_;
};

}  // namespace braid::costmodel
