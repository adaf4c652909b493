#include "planner/orders.h"

#include <algorithm>

namespace braid::planner {

StageOrder gpipe_order(std::span<const MicrobatchId> microbatches) {
  StageOrder order;
  for (const MicrobatchId id : microbatches) order.push_back({Kind::forward, id});
  for (const MicrobatchId id : microbatches) order.push_back({Kind::backward, id});
  return order;
}

StageOrder one_forward_one_backward_order(std::span<const MicrobatchId> microbatches, int stage, int stages) {
  const std::size_t count = microbatches.size();
  const std::size_t ahead = std::min(count, static_cast<std::size_t>(stages - stage - 1));
  StageOrder order;
  for (std::size_t i = 0; i < ahead; ++i) order.push_back({Kind::forward, microbatches[i]});
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) order.push_back({Kind::forward, microbatches[i + ahead]});
    order.push_back({Kind::backward, microbatches[i]});
  }
  return order;
}

StageOrder one_by_one_order(std::span<const MicrobatchId> microbatches) {
  StageOrder order;
  for (const MicrobatchId id : microbatches) {
    order.push_back({Kind::forward, id});
    order.push_back({Kind::backward, id});
  }
  return order;
}

}  // namespace braid::planner
