#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/latency/clock_latency.h"
#include "planner/plan/deployment.h"
#include "planner/plan/plan.h"

namespace braid::planner {

namespace milp {
class Exchange;
}

/// A choice that a policy offers; the first value is the default.
struct PolicyOption {
  std::string_view name;
  std::vector<std::string_view> values;
  std::int64_t multiple_of = 0;  ///< above 0: its positive multiples are values, too
};

class LaidOutBuckets;
using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// What a policy arranges: the tasks of a workload on one deployment, each global batch in so many microbatches.
struct PolicyInput {
  const workload::Workload& workload;
  const workload::SampleIndex& samples;
  ClockLatency& latency;
  Bytes capacity = 0;  ///< of one rank; 0: not limited
  const std::vector<ReplicaShape>& deployment;
  std::int64_t microbatches = 1;
  const OptionValues& options;  ///< all, resolved
  /// Sketches that take longer are of no use.
  double sketch_limit = std::numeric_limits<double>::infinity();
  /// The first arrangement that seems to fit will do.
  bool hurries = false;
  /// Nobody reads the reasons.
  bool silent = false;
  /// Of each task: tasks of one kind are alike but for their names and seeds. Empty: no two are.
  std::span<const std::int32_t> kinds = {};
  /// Buckets that were laid out before, on this deployment, in so many microbatches and of tasks of the same kinds;
  /// nullptr: none.
  LaidOutBuckets* laid_out = nullptr;

  /// The same on another deployment, of which nothing was laid out before.
  PolicyInput on(const std::vector<ReplicaShape>& other) const {
    return {workload, samples, latency, capacity, other, microbatches, options, sketch_limit, hurries, silent, kinds};
  }

  std::int32_t task_count() const { return static_cast<std::int32_t>(workload.tasks.size()); }
  const costmodel::CostModel& cost() const { return latency.cost(); }
};

/// About what a step would take.
struct Sketch {
  double seconds = std::numeric_limits<double>::infinity();  ///< infinity: beyond the limit, or nothing fits memory
  bool short_of_memory = false;                              ///< some of what might have been faster does not fit it
};

/// A fixed plan, and why it is what it is, in lines that a person can follow.
struct Arrangement {
  FixedPlan fixed;  ///< deployment, number of microbatches and storage are filled in by who asked
  std::vector<std::string> reasons;
  std::vector<std::int64_t> chunk_sizes = {};  ///< that the policy chose from; none: the plan's alone
  bool may_fuse = false;    ///< the policy might have had tasks share microbatches, though here none do
  bool united = false;      ///< it might have been any policy's
  bool may_differ = false;  ///< replicas might have been unlike, though here they may be alike
  bool truncated = false;   ///< a limit of seconds cut it short, so that another run may arrange another
};

/// What a policy proposes plans for that finds its deployments itself.
struct ProposalInput {
  const workload::Workload& workload;
  const workload::SampleIndex& samples;
  const workload::Cluster& cluster;
  ClockLatency& latency;
  Bytes capacity = 0;  ///< of one rank; 0: not limited
  const Overrides& overrides;
  /// Of like replicas, where the policy has no use for unlike ones: the grid.
  std::span<const std::vector<ReplicaShape>> deployments;
  const OptionValues& options;                           ///< all, resolved
  std::vector<costmodel::RecomputeKind> recompute = {};  ///< that it may choose from
  bool silent = false;                                   ///< nobody reads the reasons
  bool shares_tokens = false;                            ///< replicas are sequence-parallel
  milp::Exchange* models = nullptr;                      ///< what takes models for other solvers; nullptr: nothing

  /// Of as few layers as memory asks for; else what is recomputed is given, of all layers.
  bool may_recompute() const { return recompute.size() > 1; }
};

/// The number of microbatches and the place of the layers are searched or fixed outside, and a policy says what goes
/// together, and in which order; or it proposes whole plans.
class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  /// For `--help`: one line.
  virtual std::string_view summary() const = 0;
  virtual std::vector<PolicyOption> options() const = 0;
  /// Whether its tasks run together on one backbone, so that a cluster may have them share an instance.
  virtual bool shares_backbone() const { return false; }
  virtual Parallelism parallelism(const OptionValues& options) const = 0;
  /// Whether each rank keeps a share of the weights and gathers the rest (FSDP), which is simulated only.
  virtual bool gathers_weights() const { return false; }
  /// Whether all Backwards of a bucket wait for all of its Forwards.
  virtual bool passes_apart() const { return false; }
  /// hTasks, buckets, template, padding, turns and copies; nothing where the policy sees that it cannot fit memory.
  virtual std::optional<Arrangement> arrange(const PolicyInput& input) const = 0;
  /// Whether it finds deployments itself: then it is asked for nothing but proposals.
  virtual bool proposes() const { return false; }
  /// Of a policy that proposes: whether layers may be split so.
  virtual bool takes(const LayerSplit& split) const { return split.kind == LayerSplit::Kind::even; }
  /// Of a policy that proposes: whether its deployment may be a given solution of a program that it writes.
  virtual bool takes_solution() const { return false; }
  /// Whether it has no plans of its own, and planning takes the fastest of all other policies'.
  virtual bool unites() const { return false; }
  /// Whole plans, but for their storage, the most promising first. They are judged, and may not fit memory. Throws
  /// Error for overrides that have no meaning here.
  virtual std::vector<Arrangement> propose(const ProposalInput& /*input*/) const { return {}; }
  /// For policies whose arranging takes long: only the best by this are arranged; nothing where all are.
  virtual std::optional<Sketch> sketch(const PolicyInput& /*input*/) const { return std::nullopt; }
};

/// A policy as the command line names it: NAME[:option=value]...
struct PolicyChoice {
  const Policy* policy = nullptr;
  OptionValues options;
};
/// As the command line names it, with the options that are not the default.
std::string spelled(const PolicyChoice& choice);

const std::string& value_of(const OptionValues& options, std::string_view name);

}  // namespace braid::planner
