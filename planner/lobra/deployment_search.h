#pragma once

#include "planner/dispatch/dispatch.h"

namespace braid::planner {

/// A kind of replica that may be deployed.
struct Configuration {
  std::int64_t gpus = 1;
  ReplicaSpeed speed;
};

/// How many sequences a step has of each length in expectation, by intervals.
using ExpectedLoad = std::vector<double>;

/// How many replicas of each configuration.
struct DeploymentChoice {
  std::vector<std::int64_t> replicas;
  double seconds = 0;  ///< in expectation, of fractional sequences
};

struct FoundDeployments {
  std::vector<DeploymentChoice> best;  ///< the fastest first
  double bound = 0;                    ///< no deployment is faster, were replicas fractional, too
  std::int64_t looked_at = 0;
  bool truncated = false;  ///< some were not looked at
};

/// Of each of several steps that come one after another.
using ExpectedLoads = std::vector<ExpectedLoad>;

/// What a pipeline's ends cost: its longest microbatch of what a step is likely to have, once for each further stage.
double pipeline_ends(const ReplicaSpeed& speed, const ExpectedLoad& load);

/// What a fast fractional dispatch takes: replicas that hold longer sequences take those first, as they are the
/// more at a loss with short ones (LobRA appendix A's observation: shorter sequences favour smaller replicas even
/// more). Infinity where something is held by nobody.
double expected_seconds(std::span<const Configuration> configurations, std::span<const std::int64_t> replicas,
                        const ExpectedLoads& loads);

/// The numbers of replicas with the least expected seconds of all steps on so many GPUs (LobRA Eq. 2); each with no GPU
/// left that another replica could use. All are looked at that a bound does not leave out: every length has a price,
/// and no GPU earns more of those a second than of the configuration that is best at one. Where they are more than
/// `most_looked_at`, those with more replicas of earlier configurations last, the best of them is improved by giving a
/// replica's GPUs to others. `keep` of the best are returned.
FoundDeployments find_deployments(std::span<const Configuration> configurations, std::int64_t gpus,
                                  const ExpectedLoads& loads, std::size_t keep, std::int64_t most_looked_at);

/// Places of the configurations that may be part of a best deployment: of those with as many GPUs that hold as long
/// sequences one with the least seconds for the expected load that it holds, and none beside which another of as many
/// GPUs is never slower and holds no less (LobRA §4.2).
std::vector<std::size_t> worth_deploying(std::span<const Configuration> configurations, std::int64_t gpus,
                                         const ExpectedLoads& loads);

}  // namespace braid::planner
