#include "exec/pass_skew.h"

#include <numeric>

#include "base/error.h"
#include "base/statistics.h"

namespace braid::exec {

void PassSkew::add(const Kind& kind, std::span<const double> operators, double total) {
  Samples& samples = samples_[kind];
  samples.parts.resize(samples.totals.empty() ? operators.size() + 1 : samples.parts.size());
  BRAID_CHECK(samples.parts.size() == operators.size() + 1, "{} operators where passes had {}", operators.size(),
              samples.parts.size() - 1);
  for (std::size_t i = 0; i < operators.size(); ++i) samples.parts[i].push_back(operators[i]);
  samples.parts.back().push_back(total - std::accumulate(operators.begin(), operators.end(), 0.0));
  samples.totals.push_back(total);
}

double PassSkew::factor() const {
  std::vector<double> ratios;
  for (const auto& [kind, samples] : samples_) {
    double sum = 0;
    for (const std::vector<double>& part : samples.parts) sum += median(part);
    ratios.push_back(median(samples.totals) / sum);
  }
  return ratios.empty() ? 1 : median(ratios);
}

}  // namespace braid::exec
