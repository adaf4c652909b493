#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "costmodel/profile/profile.h"

namespace braid::exec {

/// Times as they are measured, with those of reference passes between them, and what a profile says of them: all at the
/// pace that the machine had in the median. Before anything is told there must be a reference pass.
class MeasuredSamples {
 public:
  /// Operator, pass, shape, tokens; of attention context and prefix.
  using Key = std::tuple<costmodel::Operator, costmodel::Pass, costmodel::OperatorShape, std::int64_t, std::int64_t,
                         std::int64_t>;
  /// A whole pass of one point of those that are measured.
  using PassKey = std::pair<std::size_t, costmodel::Pass>;

  void add_reference(double seconds) { references_.push_back(seconds); }
  std::size_t references() const { return references_.size(); }
  void add(const Key& key, double seconds) { samples_[key].push_back({seconds, references_.size()}); }
  void add_pass(const PassKey& key, double seconds) { passes_[key].push_back({seconds, references_.size()}); }
  /// Forgets all but the reference passes.
  void clear();

  /// The median.
  double reference_seconds() const;
  /// Of each key, in order, the median and spread of its samples at a usual pace.
  std::vector<costmodel::ProfileEntry> entries() const;
  /// Of each whole pass the median, likewise.
  std::map<PassKey, double> passes() const;

 private:
  /// A moment is the number of reference passes before it.
  struct Sample {
    double seconds = 0;
    std::size_t moment = 0;
  };

  /// How much longer all took at each moment than it does in the median.
  std::vector<double> pace_by_moment() const;
  static std::vector<double> at_pace(const std::vector<Sample>& samples, const std::vector<double>& paces);

  std::vector<double> references_;
  std::map<Key, std::vector<Sample>> samples_;
  std::map<PassKey, std::vector<Sample>> passes_;
};

}  // namespace braid::exec
