#pragma once

#include "exec/ranks/communicator.h"
#include "kernels/device.h"
#include "planner/plan/plan.h"

namespace braid::cli {

/// A step that took so much longer or shorter than predicted asks for a reason, as a share of the prediction.
inline constexpr double kUnexplained = 0.125;

/// Says why a run's steps took other than its plan predicts: whether the machine has changed its pace since the plan's
/// profile was measured (exec::ReferencePass). A profile that profile_for keeps and that was measured while the machine
/// was slowed down is forgotten, so that the next plan measures anew. Every rank calls this, with the memory of a
/// profile's reference pass to spare; rank 0 speaks.
void explain_by_pace(const planner::Plan& plan, bool quiet, exec::Communicator& communicator, kernels::Device& device);

}  // namespace braid::cli
