#include "exec/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace braid::exec {
namespace {

using costmodel::RopeKind;
using costmodel::RopeScaling;

double stretched_by_llama3(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double longest = scaling.original_max_position / scaling.low_frequency_factor;
  const double shortest = scaling.original_max_position / scaling.high_frequency_factor;
  if (wavelength > longest) return frequency / scaling.factor;
  if (wavelength < shortest) return frequency;
  const double smooth = (scaling.original_max_position / wavelength - scaling.low_frequency_factor) /
                        (scaling.high_frequency_factor - scaling.low_frequency_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

/// The dimensions between which YaRN blends.
struct Ramp {
  double first = 0;
  double last = 0;

  double at(double i) const { return std::clamp((i - first) / (last - first), 0.0, 1.0); }
};

Ramp yarn_ramp(const costmodel::BackboneShape& backbone) {
  const RopeScaling& scaling = backbone.rope_scaling;
  const auto width = static_cast<double>(backbone.head_dim);
  // The dimension that turns so often within the positions of pre-training.
  const auto dimension = [&](double turns) {
    return width * std::log(scaling.original_max_position / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(backbone.rope_theta));
  };
  Ramp ramp{dimension(scaling.beta_fast), dimension(scaling.beta_slow)};
  if (scaling.truncate) ramp = {std::floor(ramp.first), std::ceil(ramp.last)};
  ramp = {std::max(ramp.first, 0.0), std::min(ramp.last, width - 1)};
  if (ramp.first == ramp.last) ramp.last += 0.001;  // as transformers parts them
  return ramp;
}

}  // namespace

std::vector<float> rope_frequencies(const costmodel::BackboneShape& backbone) {
  const RopeScaling& scaling = backbone.rope_scaling;
  const Ramp ramp = scaling.kind == RopeKind::yarn ? yarn_ramp(backbone) : Ramp{};
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < backbone.head_dim / 2; ++i) {
    double frequency =
        std::pow(backbone.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(backbone.head_dim));
    switch (scaling.kind) {
      case RopeKind::plain:
        break;
      case RopeKind::linear:
        frequency /= scaling.factor;
        break;
      case RopeKind::llama3:
        frequency = stretched_by_llama3(frequency, scaling);
        break;
      case RopeKind::yarn: {
        const double share = ramp.at(static_cast<double>(i));
        frequency = frequency / scaling.factor * share + frequency * (1 - share);
        break;
      }
    }
    frequencies.push_back(static_cast<float>(frequency));
  }
  return frequencies;
}

}  // namespace braid::exec
