#include "exec/profiling/measured_samples.h"

#include "base/statistics.h"
#include "exec/profiling/reference_pass.h"

namespace braid::exec {
namespace {

/// At a usual pace, for samples at others to be left out.
constexpr std::size_t kFewestSamples = 3;

/// The quartiles' distance, as a share of the median.
double spread_of(const std::vector<double>& samples, double middle) {
  return middle > 0 ? (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle : 0;
}

}  // namespace

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

std::vector<double> MeasuredSamples::at_pace(const std::vector<Sample>& samples, const std::vector<double>& paces) {
  std::vector<double> seconds, paces_then;
  for (const Sample& sample : samples) {
    seconds.push_back(sample.seconds);
    paces_then.push_back(paces[sample.moment]);
  }
  return at_usual_pace(seconds, paces_then, kFewestSamples);
}

std::vector<costmodel::ProfileEntry> MeasuredSamples::entries() const {
  const std::vector<double> paces = pace_by_moment();
  std::vector<costmodel::ProfileEntry> entries;
  for (const auto& [key, samples] : samples_) {
    const std::vector<double> seconds = at_pace(samples, paces);
    costmodel::ProfileEntry entry;
    std::tie(entry.op, entry.pass, entry.shape, entry.tokens, entry.context, entry.prefix) = key;
    entry.seconds = median(seconds);
    entry.spread = spread_of(seconds, entry.seconds);
    entry.count = std::ssize(seconds);
    entry.source = "measured";
    entries.push_back(entry);
  }
  return entries;
}

std::map<MeasuredSamples::PassKey, double> MeasuredSamples::passes() const {
  const std::vector<double> paces = pace_by_moment();
  std::map<PassKey, double> medians;
  for (const auto& [key, samples] : passes_) medians[key] = median(at_pace(samples, paces));
  return medians;
}

}  // namespace braid::exec
