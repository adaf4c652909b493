#pragma once

#include <vector>

#include "planner/plan/deployment.h"
#include "planner/plan/policy.h"

namespace braid::planner {

/// One of the searches that planning a policy is made of.
struct Way {
  PolicyChoice choice;
  Overrides overrides;
};

/// Of most policies itself, for every split that is searched. Of one that unites others those of all other policies,
/// with the options that make the most of each first, so that what is far slower is soon seen to be; then as each is by
/// default, so that none of them is predicted to be faster. Where the split is not given, even and balanced ones.
std::vector<Way> ways_of(const PolicyChoice& choice, const Overrides& overrides, bool on_gpus);

/// What is searched for such overrides: even splits, and where they ask for balanced ones those alone, too. Each by
/// itself, so that more to choose from never hides what is faster.
std::vector<Overrides> splits_to_search(const Overrides& overrides);

}  // namespace braid::planner
