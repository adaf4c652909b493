#pragma once

#include <vector>

namespace braid::sim {

/// The Gittins index of jobs whose service S is drawn from an empirical distribution: of a job that has attained a,
/// how likely it ends for what it takes, at best: sup over d > 0 of P(S - a <= d | S > a) / E[min(S - a, d) | S > a]
/// (Tiresias, NSDI'19, §4.2).
class GittinsIndex {
 public:
  /// In any order. Cost: O(n log n).
  explicit GittinsIndex(std::vector<double> services);

  /// Per unit of service; infinite where no job is longer than what is attained.
  /// Cost: O(log n), and the corners of a concave hull.
  double at(double attained) const;

 private:
  /// The distribution as a curve: how many have ended by a service, over the service that all take until then. The
  /// index is the steepest way from a point of it to one further on, which lies on the hull of what is further on.
  struct Point {
    double service = 0, ended = 0, taken = 0;
    std::size_t next = 0;  // corner of the hull from here on; itself at the end
  };

  std::vector<Point> points_;  // one for each service that there is, ascending
};

}  // namespace braid::sim
