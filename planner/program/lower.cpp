#include "planner/program/lower.h"

#include "planner/program/lowering.h"
#include "planner/program/sync_order.h"

namespace braid::planner {

Program lower(const Schedule& schedule) {
  Lowering lowering(schedule, schedule.next_batch, schedule.first_id);
  lowering.push(schedule.microbatches, sync_order(schedule));
  for (std::size_t replica = 0; replica < schedule.orders.size(); ++replica) {
    for (std::size_t stage = 0; stage < schedule.orders[replica].size(); ++stage)
      lowering.feed(replica, stage, schedule.orders[replica][stage]);
  }
  lowering.finish();
  return lowering.take_rest();
}

}  // namespace braid::planner
