#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "costmodel/profile.h"
#include "exec/pass_skew.h"

namespace braid::exec {

/// Times as they are measured, with those of reference passes between them, and what a profile says of them: all at the
/// pace that the machine had in the median. Before anything is told there must be a reference pass.
class MeasuredSamples {
 public:
  /// Operator, pass, shape, tokens; of attention context and prefix.
  using Key = std::tuple<costmodel::Operator, costmodel::Pass, costmodel::OperatorShape, std::int64_t, std::int64_t,
                         std::int64_t>;

  void add_reference(double seconds) { references_.push_back(seconds); }
  void add(const Key& key, double seconds) { samples_[key].push_back({seconds, references_.size()}); }
  /// A whole pass: each of its operators, and all of it.
  void add_pass(const PassSkew::Kind& kind, std::vector<double> operators, double total);
  /// Forgets all but the reference passes.
  void clear();

  /// The median.
  double reference_seconds() const;
  /// Of passes at a usual pace.
  double pass_skew() const;
  /// Of each key, in order, the median and spread of its samples at a usual pace.
  std::vector<costmodel::ProfileEntry> entries() const;

 private:
  /// A moment is the number of reference passes before it.
  struct Sample {
    double seconds = 0;
    std::size_t moment = 0;
  };
  struct TimedPass {
    PassSkew::Kind kind;
    std::vector<double> operators;
    double total = 0;
    std::size_t moment = 0;
  };

  /// How much longer all took at each moment than it does in the median.
  std::vector<double> pace_by_moment() const;

  std::vector<double> references_;
  std::map<Key, std::vector<Sample>> samples_;
  std::vector<TimedPass> passes_;
};

}  // namespace braid::exec
