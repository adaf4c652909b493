#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/profile/profile.h"
#include "planner/bins/bin_packing.h"
#include "planner/dispatch/dispatch.h"
#include "planner/latency/launch_rule.h"
#include "planner/plan/deployment.h"
#include "planner/plan/preference.h"
#include "planner/program/lower.h"
#include "workload/cluster.h"
#include "workload/sample_index.h"
#include "workload/workload.h"

namespace braid::planner {

enum class PipelineTemplate {
  one_forward_one_backward,
  interleaved,  ///< 1F1B over several model chunks a stage
  gpipe,
  one_by_one,
  structured,  ///< MuxTune §3.4.1: FixedPlan::order
  stream,      ///< buckets' clocks in that order without a drain: a bucket waits for its own Steps alone
  lora_1f1b,   ///< LoRAPP (mLoRA §3.2): hTasks follow one another without a flush
  lora_gpipe
};

/// An entry of the structured template: the pass of a bucket's clock (the `clock`-th chunk group of each of its
/// hTasks).
struct TemplateSlot {
  bool backward = false;
  std::int32_t bucket = 0;
  std::int32_t clock = 0;
  bool operator==(const TemplateSlot&) const = default;
};

/// How far a sample is padded inside its microbatch.
enum class Padding {
  none,        ///< samples lie end to end
  max_length,  ///< to its own task's max_length
  longest      ///< to the largest max_length of the tasks that it shares microbatches with
};

/// hTasks that run at once, for so many windows.
struct Admission {
  std::int64_t windows = 0;
  std::vector<std::int32_t> htasks;
  bool operator==(const Admission&) const = default;
};

/// How the samples of a step come to replicas that may be unlike, and into microbatches of like lengths (LobRA §4.3).
struct LengthDispatch {
  enum class Kind {
    balanced,  ///< so that the slowest replica is as fast as is found (Eq. 3)
    solved,    ///< as a mixed-integer program from there on, within kDispatchLimits
    by_length  ///< each length to the replicas that are the most efficient with it (Figure 4c)
  };
  Kind kind = Kind::balanced;
  std::int64_t interval = 256;  ///< tokens: ranges end at multiples of it
  std::int64_t ranges = 16;     ///< at most, found for each step (Eq. 4)
  /// Tokens; not empty: the ranges of every step, of which the last is as long as any sample.
  std::vector<std::int64_t> fixed_ranges = {};
  std::vector<ReplicaSpeed> speeds = {};    ///< unlike ones
  std::vector<std::int32_t> speed_of = {};  ///< of each replica, in `speeds`

  const ReplicaSpeed& speed(std::size_t replica) const { return speeds[static_cast<std::size_t>(speed_of[replica])]; }
  bool operator==(const LengthDispatch&) const = default;
};
std::string_view name(LengthDispatch::Kind kind);

/// How the samples of a step are packed into microbatches of one capacity (LoRAFusion §5.2).
struct TokenBins {
  std::int64_t capacity = 0;  ///< tokens of a microbatch at the most, padding included
  std::int64_t multiple = 1;  ///< tokens of a task in a microbatch are padded to a multiple of it
  BinSearch search = BinSearch::searched;
  bool merges = true;  ///< what enters next fills up the emptiest microbatch of a step
  /// Where replicas are unlike: how many tokens the microbatches of each hold, `capacity` at the most, and how fast
  /// each is with rows of every length. A row goes to none that does not hold it.
  struct Unlike {
    std::int64_t interval = 256;  ///< tokens
    std::vector<std::int64_t> capacities;
    std::vector<ReplicaSpeed> speeds;
    std::vector<std::int32_t> speed_of;  ///< of each replica, in `speeds`
    bool operator==(const Unlike&) const = default;
  };
  std::optional<Unlike> unlike = {};

  std::int64_t capacity_of(std::size_t replica) const { return unlike ? unlike->capacities[replica] : capacity; }
  /// Seconds of a row on a replica; where they are alike its tokens.
  double cost_of(std::size_t replica, std::int64_t tokens) const {
    if (!unlike) return static_cast<double>(tokens);
    const ReplicaSpeed& speed = unlike->speeds[static_cast<std::size_t>(unlike->speed_of[replica])];
    const std::int64_t intervals = (tokens + unlike->interval - 1) / unlike->interval;
    const double share = static_cast<double>(tokens) / static_cast<double>(intervals * unlike->interval);
    return share * speed.seconds_a_row(static_cast<std::size_t>(intervals - 1));
  }
  bool operator==(const TokenBins&) const = default;
};

/// How the samples of a step become microbatches.
struct Batching {
  std::int64_t microbatches = 1;  ///< that each global batch is split into
  Padding padding = Padding::none;
  std::int64_t chunk_size = 0;  ///< tokens (MuxTune §3.5); 0: samples are not cut
  /// Tokens; 0: with chunks the largest max_length of the hTask in whole chunks, without them no packs.
  std::int64_t pack_length = 0;
  bool skips_padding = false;  ///< chunks of padding alone are not computed
  /// Nothing: as above. Else microbatches are as many as it takes, of pipelines without a flush alone.
  std::optional<TokenBins> bins;
};

/// In which order stages compute, and what runs at once.
struct StageSchedule {
  PipelineTemplate pipeline = PipelineTemplate::one_forward_one_backward;
  std::vector<std::vector<TemplateSlot>> order;  ///< per stage; of the structured template alone
  double transfer_share = 0;       ///< of a stream: what a message takes of a mean pass; as many more are under way
  bool blocking_messages = false;  ///< a stage does not compute while it sends or receives
  LaunchRule launch_rule = LaunchRule::earliest_start;  ///< of the subgraphs of hTasks in one clock (MuxTune §3.4.2)
  /// hTasks that run at once; one turn after another, each until all of its tasks have ended. Empty: all at once.
  std::vector<std::vector<std::int32_t>> turns;
  /// How the run goes where hTasks of later turns begin as soon as there is room; predicted rates are those of turns.
  /// Empty: as the turns have it.
  std::vector<Admission> admissions;
  std::int64_t steps_per_window = 1;  ///< consecutive global batches of each task that one Program covers
};

/// The part of a plan that stays while the set of tasks does. With the sample index and a window's number it says all
/// that the window's Program holds.
struct FixedPlan {
  std::vector<ReplicaShape> deployment;
  std::int64_t backbone_copies = 1;
  bool shards_weights = false;  ///< each replica of one stage keeps a share of every layer and gathers the rest (FSDP)
  std::vector<std::vector<TaskIndex>> htasks;
  std::vector<std::vector<std::int32_t>> buckets;  ///< of hTask indices
  Batching batching;
  /// Nothing: samples are dealt out evenly. Else microbatches are as many as it takes; of drained 1F1B alone.
  std::optional<LengthDispatch> dispatch;
  StageSchedule schedule;
  costmodel::AdapterKernels adapter_kernels = costmodel::AdapterKernels::separate;
  costmodel::Storage storage;  ///< how what is planned for stores things

  std::int32_t ranks() const;
  /// Those that run: others may have ended, be paused, or wait for a place in their search.
  std::set<TaskIndex> tasks() const;
};

struct Prediction {
  double step_seconds = 0;
  double first_step_seconds = 0;
  double tokens_per_second = 0;            ///< computed
  double effective_tokens_per_second = 0;  ///< billed: samples × their task's max_length
  double data_tokens_per_second = 0;
  double bubble_ratio = 0;  ///< a rank that waits for a collective inside a pass, and computes nothing, is not busy
  double gpu_utilization = 0;
  std::vector<double> stage_busy_share;  ///< of each stage's compute stream, likewise
  std::vector<Bytes> peak_memory_bytes;  ///< per rank
  std::vector<Bytes> held_memory_bytes;  ///< of that what no order of the work spares: weights, adapters, communicators
  std::optional<double> energy_joules;   ///< of a step over all ranks; nothing where the power is not known
  double extrapolated_share = 0;
  /// Of the first step's computed tokens, those that fill chunks up and that nobody is billed for.
  double chunk_padding_share = 0;
};

/// No plan that the policy could have made is faster, on any deployment of its grid (lower_bound.h).
struct LowerBound {
  double step_seconds = 0;
  std::string binds;
  /// No plan on the deployment that was chosen is faster than this.
  double deployment_step_seconds = 0;
};

/// What the planner decides; plan.json.
struct Plan {
  workload::Workload workload;
  workload::Cluster cluster;
  costmodel::Profile profile;
  std::string policy;
  std::vector<std::pair<std::string, std::string>> options;  ///< all, resolved
  Overrides asked;                                           ///< what the policy was not to search
  std::vector<std::int64_t> taken;                           ///< steps of each task when it begins; empty: none
  std::set<TaskIndex> paused;                                ///< tasks that are not to run until they are asked to
  FixedPlan fixed;
  Prediction predicted;
  LowerBound lower_bound;
  std::optional<Preferred> preferred;                            ///< nothing: the fastest was wanted
  std::vector<std::string> reasons;                              ///< why the plan is what it is; `braid plan --explain`
  std::vector<std::pair<std::string, std::string>> data_hashes;  ///< file, hash: datasets and weights
  bool truncated = false;                                        ///< a limit of time cut the search short
  double planning_seconds = 0;

  std::int32_t ranks() const { return fixed.ranks(); }
};

/// A plan that was made for some of a workload's tasks, `places` in order, as one of the whole workload: the others
/// wait, or have ended. Each task has taken so many steps when it begins.
Plan plan_among(Plan of_some, workload::Workload whole, std::span<const TaskIndex> places,
                std::vector<std::int64_t> taken);

/// Throws Error when a file is not a plan, or a part of it does not match its hash; the hashes of data files are
/// checked by `check_data_hashes` (plan_hashes.h).
Plan read_plan(const std::filesystem::path& path);
/// The same of its text; `name` stands in messages.
Plan plan_from(std::string_view text, const std::string& name);
std::string to_json(const Plan& plan);

std::string_view name(PipelineTemplate pipeline);
std::string_view name(Padding padding);
std::string_view name(LaunchRule rule);

/// One hTask a turn.
void queue_htasks(FixedPlan& fixed);
/// "together", "queued" or "in 3 turns".
std::string describe_turns(const FixedPlan& fixed);
/// What rows are padded to: "max_length", or what takes its place.
std::string describe_padding(const FixedPlan& fixed);
/// "8 microbatches a global batch", or where as many are made as it takes what they are.
std::string describe_microbatches(const FixedPlan& fixed);

}  // namespace braid::planner
