#include <cstdio>
#include <sstream>

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/named.h"
#include "planner/plan/deployment.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_hashes.h"

namespace braid::planner {
namespace {

constexpr PipelineTemplate kPipelines[] = {PipelineTemplate::one_forward_one_backward,
                                           PipelineTemplate::interleaved,
                                           PipelineTemplate::gpipe,
                                           PipelineTemplate::one_by_one,
                                           PipelineTemplate::structured,
                                           PipelineTemplate::stream,
                                           PipelineTemplate::lora_1f1b,
                                           PipelineTemplate::lora_gpipe};
constexpr costmodel::RecomputeKind kRecomputeKinds[] = {
    costmodel::RecomputeKind::none, costmodel::RecomputeKind::selective, costmodel::RecomputeKind::full};
constexpr LengthDispatch::Kind kDispatches[] = {LengthDispatch::Kind::balanced, LengthDispatch::Kind::solved,
                                                LengthDispatch::Kind::by_length};
constexpr Padding kPaddings[] = {Padding::none, Padding::max_length, Padding::longest};
constexpr costmodel::AdapterKernels kAdapterKernels[] = {
    costmodel::AdapterKernels::separate, costmodel::AdapterKernels::split, costmodel::AdapterKernels::side_by_side,
    costmodel::AdapterKernels::fused};
constexpr LaunchRule kLaunchRules[] = {LaunchRule::shallowest, LaunchRule::earliest_start};

/// The value of an enumeration that has that name.
template <typename Enum, std::size_t N>
Enum named(const Node& node, std::string_view key, const Enum (&values)[N]) {
  const std::string text = node.string_at(key);
  if (const auto value = value_named(text, values)) return *value;
  throw node.at(key).error(fmt::format("'{}' is not a value of '{}'", text, key),
                           fmt::format("give one of: {}", names_of(values)));
}

Prediction predicted_from(const Node& node) {
  Prediction predicted;
  predicted.step_seconds = node.number_at("step_seconds");
  predicted.first_step_seconds = node.number_at("first_step_seconds");
  predicted.tokens_per_second = node.number_at("tokens_per_second");
  predicted.effective_tokens_per_second = node.number_at("effective_tokens_per_second");
  predicted.data_tokens_per_second = node.number_at("data_tokens_per_second");
  predicted.bubble_ratio = node.number_at("bubble_ratio");
  predicted.gpu_utilization = node.number_at("gpu_utilization");
  for (const Node& share : node.at("stage_busy_share").sequence("stage_busy_share"))
    predicted.stage_busy_share.push_back(share.as_number("stage_busy_share"));
  for (const Node& bytes : node.at("peak_memory_bytes").sequence("peak_memory_bytes"))
    predicted.peak_memory_bytes.push_back(bytes.as_integer("peak_memory_bytes", 0));
  for (const Node& bytes : node.at("held_memory_bytes").sequence("held_memory_bytes"))
    predicted.held_memory_bytes.push_back(bytes.as_integer("held_memory_bytes", 0));
  if (const Node& joules = node.at("energy_joules"); !joules.is_null())
    predicted.energy_joules = joules.as_number("energy_joules");
  predicted.extrapolated_share = node.number_at("extrapolated_share");
  predicted.chunk_padding_share = node.number_at("chunk_padding_share");
  return predicted;
}

Preferred preferred_from(const Node& node) {
  constexpr Preference kWritten[] = {Preference::memory};
  named(node, "preference", kWritten);
  return {node.integer_at("free_memory_bytes", 0), node.number_at("fastest_step_seconds"),
          node.integer_at("fastest_peak_memory_bytes", 0)};
}

std::vector<TemplateSlot> slots_from(const Node& node) {
  std::vector<TemplateSlot> slots;
  std::istringstream text(node.as_string("order"));
  for (std::string word; text >> word;) {
    TemplateSlot slot;
    char pass = 0, end = 0;
    if (std::sscanf(word.c_str(), "%c%d.%d%c", &pass, &slot.bucket, &slot.clock, &end) != 3 ||
        (pass != 'F' && pass != 'B') || slot.bucket < 0 || slot.clock < 0)
      throw node.error(fmt::format("'{}' is not a pass of a bucket's clock, such as F0.1", word),
                       "make the plan again");
    slot.backward = pass == 'B';
    slots.push_back(slot);
  }
  return slots;
}

/// Of a replica whose layers have been read.
void read_recompute(const Node& node, ReplicaShape& replica) {
  for (const Node& stage : node.sequence("recompute")) {
    const auto place = static_cast<std::int32_t>(replica.recompute.size());
    if (place == replica.stages()) throw stage.error("there are more entries than stages", "make the plan again");
    const costmodel::RecomputeKind kind = named(stage, "kind", kRecomputeKinds);
    replica.recompute.push_back({kind, stage.integer_at("layers", 0, replica.layers_of(place))});
  }
  if (static_cast<std::int32_t>(replica.recompute.size()) != replica.stages())
    throw node.error(fmt::format("{} entries for {} stages", replica.recompute.size(), replica.stages()),
                     "make the plan again");
}

/// Checks that the layers of a replica follow one another and are all of the backbone's.
ReplicaShape replica_from(const Node& node, std::int64_t layer_count) {
  ReplicaShape replica;
  replica.tp = static_cast<std::int32_t>(node.integer_at("tp", 1, 1 << 20));
  std::int64_t next = 0;
  for (const Node& range : node.at("layers").sequence("layers")) {
    if (range.sequence("layers").size() != 2)
      throw range.error("a stage's layers are not [first, last)", "make the plan again");
    const std::int64_t first = range.items[0].as_integer("layers", 0, layer_count);
    const std::int64_t last = range.items[1].as_integer("layers", first + 1, layer_count);
    if (first != next)
      throw range.error(fmt::format("layer {} follows layer {}", first, next - 1), "make the plan again");
    replica.layers.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)});
    next = last;
  }
  const std::int64_t chunks = node.integer_at("model_chunks", 1),
                     pieces = static_cast<std::int64_t>(replica.layers.size());
  if (pieces % chunks != 0)
    throw node.at("model_chunks")
        .error(fmt::format("{} runs of layers are no {} a stage", pieces, chunks), "make the plan again");
  replica.model_chunks = static_cast<std::int32_t>(chunks);
  if (next != layer_count)
    throw node.at("layers").error(fmt::format("the stages hold {} of {} layers", next, layer_count),
                                  "make the plan again");
  if (const Node* recompute = node.find("recompute")) read_recompute(*recompute, replica);
  if (const Node* parallel = node.find("sequence_parallel"))
    replica.sequence_parallel = parallel->as_bool("sequence_parallel");
  return replica;
}

template <typename Number>
std::vector<Number> indices_from(const Node& list, std::string_view key, std::int64_t count) {
  std::vector<Number> indices;
  for (const Node& index : list.sequence(key))
    indices.push_back(static_cast<Number>(index.as_integer(key, 0, count - 1)));
  return indices;
}

template <typename Number>
std::vector<std::vector<Number>> index_lists(const Node& node, std::string_view key, std::int64_t count) {
  std::vector<std::vector<Number>> lists;
  for (const Node& list : node.at(key).sequence(key)) lists.push_back(indices_from<Number>(list, key, count));
  return lists;
}

std::vector<std::vector<TaskIndex>> htasks_from(const Node& node, const workload::Workload& workload) {
  std::vector<std::vector<TaskIndex>> htasks;
  for (const Node& list : node.at("htasks").sequence("htasks")) {
    std::vector<TaskIndex>& htask = htasks.emplace_back();
    for (const Node& item : list.sequence("htasks")) {
      const std::string text = item.as_string("htasks");
      TaskIndex found = kNone;
      for (std::size_t t = 0; t < workload.tasks.size(); ++t) {
        if (workload.tasks[t].name == text) found = static_cast<TaskIndex>(t);
      }
      if (found == kNone)
        throw item.error(fmt::format("task '{}' is not in the plan's workload", text), "make the plan again");
      htask.push_back(found);
    }
  }
  return htasks;
}

Overrides asked_from(const Node& node) {
  const auto number = [&](const char* key) {
    const Node* given = node.find(key);
    return given ? std::optional(given->as_integer(key, 1)) : std::nullopt;
  };
  return {number("tp"), number("pp"), number("microbatches"), layer_split_of(node.string_or("layers", "even"))};
}

std::vector<std::int64_t> taken_from(const Node& node, const workload::Workload& workload) {
  std::vector<std::int64_t> taken;
  for (const Node& steps : node.sequence("taken")) taken.push_back(steps.as_integer("taken", 0));
  if (taken.size() != workload.tasks.size())
    throw node.error(fmt::format("counts of steps for {} tasks, of {}", taken.size(), workload.tasks.size()),
                     "make the plan again");
  return taken;
}

/// Every hTask has one turn, or none is told of.
void check_turns(const Node& node, const FixedPlan& fixed) {
  if (fixed.schedule.turns.empty()) return;
  std::vector<int> times(fixed.htasks.size(), 0);
  for (const std::vector<std::int32_t>& turn : fixed.schedule.turns) {
    for (const std::int32_t htask : turn) ++times[static_cast<std::size_t>(htask)];
  }
  for (std::size_t h = 0; h < times.size(); ++h) {
    if (times[h] != 1)
      throw node.error(fmt::format("hTask {} has {} turns, not 1", h, times[h]), "make the plan again");
  }
}

/// Whether its template goes with its deployment.
void check_template(const Node& schedule, const FixedPlan& fixed) {
  for (const ReplicaShape& replica : fixed.deployment) {
    const bool interleaves = fixed.schedule.pipeline == PipelineTemplate::interleaved;
    if (interleaves != (replica.model_chunks > 1) || (interleaves && replica.stages() == 1))
      throw schedule.at("template")
          .error(fmt::format("'{}' does not go with {} stages of {} model chunks", name(fixed.schedule.pipeline),
                             replica.stages(), replica.model_chunks),
                 "make the plan again");
    if (fixed.schedule.pipeline == PipelineTemplate::structured &&
        fixed.schedule.order.size() != static_cast<std::size_t>(replica.stages()))
      throw schedule.at("order").error(
          fmt::format("the template orders {} stages of {}", fixed.schedule.order.size(), replica.stages()),
          "make the plan again");
  }
}

/// How the hTasks of a plan whose deployment has been read are run.
void read_schedule(const Node& schedule, FixedPlan& fixed) {
  fixed.schedule.pipeline = named(schedule, "template", kPipelines);
  for (const Node& slots : schedule.at("order").sequence("order")) fixed.schedule.order.push_back(slots_from(slots));
  check_template(schedule, fixed);
  fixed.batching.padding = named(schedule, "pad_to", kPaddings);
  fixed.schedule.turns = index_lists<std::int32_t>(schedule, "turns", static_cast<std::int64_t>(fixed.htasks.size()));
  check_turns(schedule.at("turns"), fixed);
  for (const Node& admission : schedule.at("admissions").sequence("admissions"))
    fixed.schedule.admissions.push_back(
        {admission.integer_at("windows", 1),
         indices_from<std::int32_t>(admission.at("htasks"), "htasks", static_cast<std::int64_t>(fixed.htasks.size()))});
  fixed.batching.microbatches = schedule.integer_at("microbatches", 1);
  fixed.schedule.transfer_share = schedule.number_at("transfer_share");
  fixed.schedule.steps_per_window = schedule.integer_at("steps_per_window", 1);
  fixed.backbone_copies = schedule.integer_at("backbone_copies", 1);
  fixed.shards_weights = schedule.at("shards_weights").as_bool("shards_weights");
  fixed.schedule.blocking_messages = schedule.at("blocking_messages").as_bool("blocking_messages");
  fixed.adapter_kernels = named(schedule, "adapter_kernels", kAdapterKernels);
  fixed.schedule.launch_rule = named(schedule, "launch_rule", kLaunchRules);
}

ReplicaSpeed speed_from(const Node& node) {
  ReplicaSpeed speed;
  speed.stages = node.integer_at("stages", 1);
  for (const Node& full : node.at("full_microbatches").sequence("full_microbatches")) {
    if (full.sequence("full_microbatches").size() != 2)
      throw full.error("a full microbatch is not [rows, seconds]", "make the plan again");
    speed.full.push_back({full.items[0].as_integer("rows", 1, 1 << 30), full.items[1].as_number("seconds")});
  }
  return speed;
}

/// One entry for each replica.
std::vector<std::int32_t> speeds_of_replicas(const Node& node, const FixedPlan& fixed, std::size_t speeds) {
  const Node& list = node.at("speed_of_replica");
  std::vector<std::int32_t> speed_of =
      indices_from<std::int32_t>(list, "speed_of_replica", static_cast<std::int64_t>(speeds));
  if (speed_of.size() != fixed.deployment.size())
    throw list.error(fmt::format("{} entries for {} replicas", speed_of.size(), fixed.deployment.size()),
                     "make the plan again");
  return speed_of;
}

TokenBins::Unlike unlike_bins_from(const Node& node, const FixedPlan& fixed, std::int64_t most) {
  TokenBins::Unlike unlike;
  unlike.interval = node.integer_at("interval", 1);
  for (const Node& capacity : node.at("capacities").sequence("capacities"))
    unlike.capacities.push_back(capacity.as_integer("capacities", 1, most));
  if (unlike.capacities.size() != fixed.deployment.size())
    throw node.at("capacities")
        .error(fmt::format("{} entries for {} replicas", unlike.capacities.size(), fixed.deployment.size()),
               "make the plan again");
  for (const Node& speed : node.at("speeds").sequence("speeds")) unlike.speeds.push_back(speed_from(speed));
  unlike.speed_of = speeds_of_replicas(node, fixed, unlike.speeds.size());
  return unlike;
}

/// Of a plan whose deployment and schedule have been read.
TokenBins bins_from(const Node& node, const FixedPlan& fixed) {
  constexpr BinSearch kSearches[] = {BinSearch::greedy, BinSearch::searched, BinSearch::solved};
  TokenBins bins;
  bins.multiple = node.integer_at("multiple", 1, std::int64_t{1} << 30);
  bins.capacity = node.integer_at("capacity", bins.multiple, std::int64_t{1} << 30);
  bins.search = named(node, "search", kSearches);
  bins.merges = node.at("merges").as_bool("merges");
  if (const Node* unlike = node.find("unlike")) bins.unlike = unlike_bins_from(*unlike, fixed, bins.capacity);
  const bool follows =
      fixed.schedule.pipeline == PipelineTemplate::lora_1f1b || fixed.schedule.pipeline == PipelineTemplate::lora_gpipe;
  if (!follows || fixed.dispatch || fixed.batching.chunk_size > 0 || fixed.batching.pack_length > 0)
    throw node.error(fmt::format("bins go with no chunks, packs or dispatch, in pipelines of {} and {}, not of {}",
                                 name(PipelineTemplate::lora_1f1b), name(PipelineTemplate::lora_gpipe),
                                 name(fixed.schedule.pipeline)),
                     "make the plan again");
  return bins;
}

LengthDispatch dispatch_from(const Node& node, const FixedPlan& fixed) {
  LengthDispatch dispatch;
  dispatch.kind = named(node, "kind", kDispatches);
  dispatch.interval = node.integer_at("interval", 1);
  dispatch.ranges = node.integer_at("ranges", 1);
  for (const Node& end : node.at("fixed_ranges").sequence("fixed_ranges"))
    dispatch.fixed_ranges.push_back(end.as_integer("fixed_ranges", 1, std::int64_t{1} << 40));
  for (const Node& speed : node.at("speeds").sequence("speeds")) dispatch.speeds.push_back(speed_from(speed));
  dispatch.speed_of = speeds_of_replicas(node, fixed, dispatch.speeds.size());
  if (fixed.schedule.pipeline != PipelineTemplate::one_forward_one_backward)
    throw node.error(fmt::format("dispatch by lengths does not go with '{}'", name(fixed.schedule.pipeline)),
                     "make the plan again");
  return dispatch;
}

/// A plan's parts belong together: one edited by hand would be run with the others' predictions.
void check_unchanged(const Node& node, std::string_view text, const Plan& plan) {
  const Node& written = node.at("hashes");
  const PlanHashes hashes = hash_plan(text);
  for (const auto& [what, hash] : {std::pair("workload", hashes.workload), std::pair("cluster", hashes.cluster),
                                   std::pair("profile", hashes.profile)}) {
    if (written.string_at(what) == hash) continue;
    // Some builds hashed a profile as its own file has it.
    if (what == std::string_view("profile") && written.string_at(what) == hash_bytes(costmodel::to_json(plan.profile)))
      continue;
    throw node.at(what).error(fmt::format("the {} in this plan was changed after planning", what),
                              "change its own file and plan again with `braid plan`");
  }
  if (written.string_at("decisions") != hashes.decisions)
    throw node.error("this plan was changed after planning", "make the plan again with `braid plan`");
}

}  // namespace

Plan read_plan(const std::filesystem::path& path) {
  return plan_from(read_file(path), path.string());
}

Plan plan_from(std::string_view text, const std::string& name) {
  const Node node = parse_json(text, name);
  if (!node.is_map() || !node.find("format") || !node.find("policy"))
    throw node.error("this is not a plan", "give what `braid plan --out` wrote");
  if (node.integer_at("format") != 1) throw node.at("format").error("unknown format", "this build reads format 1");
  Plan plan;
  plan.workload = workload::workload_from(node.at("workload"));
  plan.cluster = workload::cluster_from(node.at("cluster"));
  plan.profile = costmodel::profile_from(node.at("profile"));
  plan.policy = node.at("policy").string_at("name");
  for (const auto& [key, value] : node.at("policy").at("options").fields)
    plan.options.emplace_back(key, value.as_string(key));
  if (const Node* asked = node.find("asked")) plan.asked = asked_from(*asked);
  if (const Node* taken = node.find("taken")) plan.taken = taken_from(*taken, plan.workload);
  if (const Node* paused = node.find("paused")) {
    for (const Node& task : paused->sequence("paused"))
      plan.paused.insert(task.as_integer("paused", 0, std::ssize(plan.workload.tasks) - 1));
  }
  for (const Node& replica : node.at("deployment").sequence("deployment"))
    plan.fixed.deployment.push_back(replica_from(replica, plan.workload.backbone.layers));
  // Older builds had all or nothing, by the profile.
  if (plan.profile.recomputes) recompute_all(costmodel::RecomputeKind::full, plan.fixed.deployment);
  plan.fixed.htasks = htasks_from(node, plan.workload);
  plan.fixed.buckets = index_lists<std::int32_t>(node, "buckets", static_cast<std::int64_t>(plan.fixed.htasks.size()));
  plan.fixed.storage = plan.profile.storage();
  plan.fixed.batching.chunk_size = node.integer_at("chunk_size", 0);
  plan.fixed.batching.pack_length = node.integer_at("pack_length", 0);
  plan.fixed.batching.skips_padding = node.at("skips_padding").as_bool("skips_padding");
  read_schedule(node.at("schedule"), plan.fixed);
  if (const Node* dispatch = node.find("dispatch")) plan.fixed.dispatch = dispatch_from(*dispatch, plan.fixed);
  if (const Node* bins = node.find("bins")) plan.fixed.batching.bins = bins_from(*bins, plan.fixed);
  plan.predicted = predicted_from(node.at("predicted"));
  const Node& bound = node.at("lower_bound");
  plan.lower_bound = {bound.number_at("step_seconds"), bound.string_at("binds"),
                      bound.number_at("deployment_step_seconds")};
  if (const Node* preferred = node.find("preferred")) plan.preferred = preferred_from(*preferred);
  for (const Node& reason : node.at("reasons").sequence("reasons")) plan.reasons.push_back(reason.as_string("reasons"));
  for (const auto& [file, hash] : node.at("hashes").at("files").fields)
    plan.data_hashes.emplace_back(file, hash.as_string(file));
  check_unchanged(node, text, plan);
  if (const Node* meta = node.find("meta")) plan.planning_seconds = meta->number_or("planning_seconds", 0.0);
  return plan;
}

}  // namespace braid::planner
