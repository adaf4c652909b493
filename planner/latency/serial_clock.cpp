#include "planner/latency/serial_clock.h"

#include <algorithm>

#include "base/error.h"

namespace braid::planner {
namespace {

using ProductAdapters = SerialWork::ProductAdapters;

/// Of all microbatches of a clock that adapt it.
using Product = std::vector<const ProductAdapters*>;

std::vector<Product> products(std::span<const SerialWork* const> clock) {
  std::vector<Product> all;
  for (const SerialWork* work : clock) {
    for (const ProductAdapters& adapters : work->adapters) {
      const auto same = [&](const Product& known) { return known.front()->same_product(adapters); };
      const auto known = std::find_if(all.begin(), all.end(), same);
      (known == all.end() ? all.emplace_back() : *known).push_back(&adapters);
    }
  }
  return all;
}

/// Calls of one launch, and what it takes.
struct PricedLaunch {
  std::vector<costmodel::OperatorCall> calls;
  Nanoseconds time = 0;
};

/// Prices launches; layers are alike, so that most of them were priced before.
class SharedLaunches {
 public:
  explicit SharedLaunches(const LaunchPricing& pricing) : pricing_(pricing) {}

  Nanoseconds time(const std::vector<costmodel::OperatorCall>& calls) {
    const auto known =
        std::find_if(priced_.begin(), priced_.end(), [&](const PricedLaunch& launch) { return launch.calls == calls; });
    if (known != priced_.end()) return known->time;
    return priced_.emplace_back(PricedLaunch{calls, pricing_(calls)}).time;
  }

 private:
  const LaunchPricing& pricing_;
  std::vector<PricedLaunch> priced_;
};

}  // namespace

SerialWork serial_work(const OperatorGraph& graph) {
  SerialWork work;
  for (OperatorVertex vertex = 0; vertex < boost::num_vertices(graph); ++vertex) {
    const OperatorNode& node = graph[vertex];
    BRAID_CHECK(!node.communication, "a stage whose launches come one after another has collectives");
    work.apart += node.latency;
    if (!node.adapter) continue;
    ProductAdapters own{node.layer, node.group, node.calls.front().pass == costmodel::Pass::forward};
    const auto same = [&](const ProductAdapters& known) { return known.same_product(own); };
    auto adapters = std::find_if(work.adapters.begin(), work.adapters.end(), same);
    if (adapters == work.adapters.end()) adapters = work.adapters.insert(adapters, std::move(own));
    adapters->apart += node.latency;
    if (node.calls.front().op == costmodel::Operator::split_gradient) {
      adapters->additions += node.latency;
    } else {
      adapters->calls.insert(adapters->calls.end(), node.calls.begin(), node.calls.end());
    }
  }
  return work;
}

Nanoseconds serial_time(std::span<const SerialWork* const> clock, bool share, const LaunchPricing& pricing) {
  Nanoseconds apart = 0;
  for (const SerialWork* work : clock) apart += work->apart;
  if (!share) return apart;
  Nanoseconds spared = 0;
  SharedLaunches launches(pricing);
  for (const Product& product : products(clock)) {
    if (product.size() < 2) continue;
    std::vector<costmodel::OperatorCall> calls;
    for (const ProductAdapters* adapters : product) {
      spared += adapters->apart - adapters->additions;
      calls.insert(calls.end(), adapters->calls.begin(), adapters->calls.end());
    }
    for (std::size_t call = 0; call < calls.size(); ++call) calls[call].beside = call > 0;
    spared -= launches.time(calls);
  }
  return apart - std::max<Nanoseconds>(spared, 0);
}

}  // namespace braid::planner
