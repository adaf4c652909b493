#include "exec/measured_samples.h"

#include <utility>

#include "base/statistics.h"
#include "exec/reference_pass.h"

namespace braid::exec {
namespace {

/// At a usual pace, for samples at others to be left out.
constexpr std::size_t kFewestSamples = 3;

/// The quartiles' distance, as a share of the median.
double spread_of(const std::vector<double>& samples, double middle) {
  return middle > 0 ? (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle : 0;
}

}  // namespace

void MeasuredSamples::add_pass(const PassSkew::Kind& kind, std::vector<double> operators, double total) {
  passes_.push_back({kind, std::move(operators), total, references_.size()});
}

void MeasuredSamples::clear() {
  samples_.clear();
  passes_.clear();
}

double MeasuredSamples::reference_seconds() const {
  return median(references_);
}

std::vector<double> MeasuredSamples::pace_by_moment() const {
  const double usual = reference_seconds();
  std::vector<double> paces;
  for (std::size_t moment = 0; moment <= references_.size(); ++moment)
    paces.push_back(reference_around(references_, moment) / usual);
  return paces;
}

double MeasuredSamples::pass_skew() const {
  const std::vector<double> paces = pace_by_moment();
  PassSkew skew;
  for (const TimedPass& pass : passes_) {
    const double pace = paces[pass.moment];
    if (!usual_pace(pace)) continue;
    std::vector<double> operators = pass.operators;
    for (double& seconds : operators) seconds /= pace;
    skew.add(pass.kind, operators, pass.total / pace);
  }
  return skew.factor();
}

std::vector<costmodel::ProfileEntry> MeasuredSamples::entries() const {
  const std::vector<double> paces = pace_by_moment();
  std::vector<costmodel::ProfileEntry> entries;
  for (const auto& [key, samples] : samples_) {
    std::vector<double> seconds, paces_then;
    for (const Sample& sample : samples) {
      seconds.push_back(sample.seconds);
      paces_then.push_back(paces[sample.moment]);
    }
    const std::vector<double> at_pace = at_usual_pace(seconds, paces_then, kFewestSamples);
    costmodel::ProfileEntry entry;
    std::tie(entry.op, entry.pass, entry.shape, entry.tokens, entry.context, entry.prefix) = key;
    entry.seconds = median(at_pace);
    entry.spread = spread_of(at_pace, entry.seconds);
    entry.count = std::ssize(at_pace);
    entry.source = "measured";
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace braid::exec
