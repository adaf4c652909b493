#pragma once

#include "cli/support/options.h"
#include "cli/support/session.h"

namespace braid::cli {

/// Runs a few microbatches of the plan for real, within `seconds`, and tells how they went on stderr. Returns the
/// plan's profile; where the prediction did not hold its passes take as much longer, or shorter, as the pilot did.
/// `data` is read anew where the plan has several ranks, which are launched. Throws Error for a plan that cannot be
/// executed here, RanksEnded where ranks failed.
costmodel::Profile piloted_profile(const planner::Plan& plan, const Data& data, const CommonFlags& flags,
                                   double seconds);

/// `braid profile --plan`: the same for a plan's file, written to --out.
int run_pilot_of_plan(CommonFlags flags);

}  // namespace braid::cli
