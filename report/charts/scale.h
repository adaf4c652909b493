#pragma once

#include <optional>
#include <string>
#include <vector>

namespace braid::report {

/// What a chart's axis says. Ends that are not given are taken from the values.
struct Axis {
  std::string label;  ///< with the unit: "time / ms"
  bool logarithmic = false;
  std::optional<double> from = {}, to = {};
};

/// Values of an axis as places in a picture.
class Scale {
 public:
  /// Of values that lie in [least, most]; `begin` and `end` are places, of which either may be the larger. The range is
  /// widened to whole ticks where the axis leaves it open.
  Scale(const Axis& axis, double least, double most, double begin, double end, int most_ticks);

  double operator()(double value) const;
  /// Whether it can be shown at all: it is finite, and above 0 where the axis is logarithmic.
  bool shows(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }
  /// As many decimals as tell the ticks apart.
  std::string text(double tick) const;
  double from() const { return from_; }
  double to() const { return to_; }

 private:
  void choose_linear_ticks(const Axis& axis, int most_ticks);
  void choose_logarithmic_ticks(const Axis& axis, int most_ticks);

  bool logarithmic_;
  double from_, to_, begin_, end_;
  double step_ = 1;
  std::vector<double> ticks_;
};

}  // namespace braid::report
