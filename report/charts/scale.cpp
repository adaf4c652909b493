#include "report/charts/scale.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "report/markup.h"

namespace braid::report {

Scale::Scale(const Axis& axis, double least, double most, double begin, double end, int most_ticks)
    : logarithmic_(axis.logarithmic),
      from_(axis.from.value_or(least)),
      to_(axis.to.value_or(most)),
      begin_(begin),
      end_(end) {
  if (logarithmic_) {
    choose_logarithmic_ticks(axis, most_ticks);
  } else {
    choose_linear_ticks(axis, most_ticks);
  }
}

/// Steps of 1, 2 or 5 times a power of ten.
void Scale::choose_linear_ticks(const Axis& axis, int most_ticks) {
  if (!(to_ > from_)) {
    const double room = from_ == 0 ? 1 : std::abs(from_) * 0.1;
    if (!axis.from) from_ -= room;
    if (!axis.to) to_ = std::max(to_, from_) + room;
    if (!(to_ > from_)) to_ = from_ + room;
  }
  const double rough = (to_ - from_) / most_ticks;
  step_ = std::pow(10, std::floor(std::log10(rough)));
  for (const double times : {1.0, 2.0, 5.0, 10.0}) {
    if (step_ * times < rough) continue;
    step_ *= times;
    break;
  }
  constexpr double kNearly = 1e-9;
  if (!axis.from) from_ = std::floor(from_ / step_ + kNearly) * step_;
  if (!axis.to) to_ = std::ceil(to_ / step_ - kNearly) * step_;
  for (double tick = std::ceil(from_ / step_ - kNearly); tick * step_ <= to_ + kNearly * step_; ++tick)
    ticks_.push_back(tick * step_);
}

/// Powers of ten, and between few of them 2 and 5 as well.
void Scale::choose_logarithmic_ticks(const Axis& axis, int most_ticks) {
  if (!(from_ > 0)) from_ = to_ > 0 ? to_ / 10 : 0.1;
  if (!(to_ > from_)) {
    to_ = from_ * 2;
    if (!axis.from) from_ /= 2;
  }
  const double decades = std::log10(to_ / from_);
  const std::vector<double> steps = decades * 3 <= most_ticks ? std::vector<double>{1, 2, 5} : std::vector<double>{1};
  std::vector<double> all;
  for (int power = static_cast<int>(std::floor(std::log10(from_))) - 1; power <= std::log10(to_) + 1; ++power)
    for (const double times : steps) all.push_back(times * std::pow(10, power));
  constexpr double kNearly = 1e-9;
  if (!axis.from)
    from_ = *std::ranges::find_if(all.rbegin(), all.rend(), [&](double tick) { return tick <= from_ * (1 + kNearly); });
  if (!axis.to) to_ = *std::ranges::find_if(all, [&](double tick) { return tick >= to_ * (1 - kNearly); });
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(decades / most_ticks)));
  std::size_t place = 0;
  for (const double tick : all) {
    if (tick < from_ * (1 - kNearly) || tick > to_ * (1 + kNearly)) continue;
    if (place++ % every == 0) ticks_.push_back(tick);
  }
}

double Scale::operator()(double value) const {
  const double share = logarithmic_ ? std::log(value / from_) / std::log(to_ / from_) : (value - from_) / (to_ - from_);
  return begin_ + std::clamp(share, 0.0, 1.0) * (end_ - begin_);
}

bool Scale::shows(double value) const {
  return std::isfinite(value) && (!logarithmic_ || value > 0);
}

/// Digits enough to tell two ticks apart.
std::string Scale::text(double tick) const {
  if (logarithmic_) return number_text(tick);
  if (std::abs(tick) < step_ * 1e-6) return "0";
  const double most = std::max(std::abs(from_), std::abs(to_));
  const int of_step = static_cast<int>(std::floor(std::log10(step_) + 1e-9));
  if (most < 1e-3 || most >= 1e12)
    return fmt::format("{:.{}e}", tick, std::max(0, static_cast<int>(std::floor(std::log10(most))) - of_step));
  std::string digits = fmt::format("{:.{}f}", std::abs(tick), std::max(0, -of_step));
  for (std::ptrdiff_t place = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size())) - 3; place > 0;
       place -= 3)
    digits.insert(static_cast<std::size_t>(place), ",");
  return (tick < 0 ? "-" : "") + digits;
}

}  // namespace braid::report
