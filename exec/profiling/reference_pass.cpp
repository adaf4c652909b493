#include "exec/profiling/reference_pass.h"

#include <algorithm>

#include "base/error.h"
#include "base/statistics.h"

namespace braid::exec {

ReferencePass::ReferencePass(const costmodel::BackboneShape& backbone, kernels::Device& device)
    : point_(uniform_point(0, 256, 64, 0, 256)), backbone_(backbone, 2, device) {
  costmodel::AdapterShape adapter;
  adapter.rank = 16, adapter.alpha = 16;
  adapter.targets = costmodel::kSeparateModules;
  backbone_.set_adapters({&adapter, 1});
  run();
}

double ReferencePass::seconds(Communicator& communicator) {
  communicator.barrier();
  run();
  std::vector<double> sum = {run()};
  communicator.sum(sum);
  return sum[0] / communicator.size();
}

double ReferencePass::seconds_beside(double run_seconds, Communicator& communicator) {
  constexpr double kShareOfRun = 0.05;
  constexpr std::int64_t kMost = 5;
  std::vector<double> passes = {seconds(communicator)};
  const auto more = static_cast<std::int64_t>(std::min(kShareOfRun * run_seconds / passes[0], 1.0 * kMost));
  while (std::ssize(passes) < more) passes.push_back(seconds(communicator));
  return median(std::move(passes));
}

double reference_around(std::span<const double> references, std::size_t moment) {
  const std::size_t first = moment - std::min<std::size_t>(moment, 2);
  const std::size_t last = std::min(moment + 2, references.size());
  BRAID_CHECK(first < last, "no reference pass around {} of {}", moment, references.size());
  const std::span<const double> around = references.subspan(first, last - first);
  return median({around.begin(), around.end()});
}

std::vector<double> at_usual_pace(std::span<const double> seconds, std::span<const double> paces, std::size_t fewest) {
  BRAID_CHECK(seconds.size() == paces.size(), "{} times and {} paces", seconds.size(), paces.size());
  std::vector<double> all, usual;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    all.push_back(seconds[i] / paces[i]);
    if (usual_pace(paces[i])) usual.push_back(all.back());
  }
  return usual.size() < fewest ? all : usual;
}

double ReferencePass::run() {
  const ProbedBackbone::Passes passes = backbone_.run(point_, false);
  return passes.forward_seconds + passes.backward_seconds;
}

}  // namespace braid::exec
