#include "sim/cluster/schedulers/gittins_index.h"

#include <algorithm>
#include <limits>

namespace braid::sim {

GittinsIndex::GittinsIndex(std::vector<double> services) {
  std::sort(services.begin(), services.end());
  const auto all = static_cast<double>(services.size());
  double ended = 0, taken = 0, before = 0;
  for (const double service : services) {
    taken += (all - ended) * (service - before);
    before = service;
    ++ended;
    if (points_.empty() || points_.back().service < service) points_.emplace_back().service = service;
    points_.back().ended = ended;
    points_.back().taken = taken;
  }
  const auto slope = [](const Point& from, const Point& to) {
    return (to.ended - from.ended) / (to.taken - from.taken);
  };
  for (std::size_t i = points_.size(); i-- > 0;) {
    Point& point = points_[i];
    point.next = std::min(i + 1, points_.size() - 1);
    while (points_[point.next].next != point.next &&
           slope(point, points_[points_[point.next].next]) >= slope(point, points_[point.next]))
      point.next = points_[point.next].next;
  }
}

double GittinsIndex::at(double attained) const {
  const auto first = std::upper_bound(points_.begin(), points_.end(), attained,
                                      [](double service, const Point& point) { return service < point.service; });
  if (first == points_.end()) return std::numeric_limits<double>::infinity();
  const double ended = first == points_.begin() ? 0 : std::prev(first)->ended;
  const double taken = first->taken - (points_.back().ended - ended) * (first->service - attained);
  const auto slope = [&](const Point& to) { return (to.ended - ended) / (to.taken - taken); };
  const Point* best = &*first;
  for (const Point* next = &points_[best->next]; next != best && slope(*next) >= slope(*best);
       next = &points_[best->next])
    best = next;
  return slope(*best);
}

}  // namespace braid::sim
