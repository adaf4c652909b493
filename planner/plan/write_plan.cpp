#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_hashes.h"

namespace braid::planner {
namespace {

using Json = nlohmann::ordered_json;

Json deployment_json(const FixedPlan& fixed) {
  Json deployment = Json::array();
  std::int32_t rank = 0;
  for (const ReplicaShape& replica : fixed.deployment) {
    Json layers = Json::array(), ranks = Json::array();
    for (const LayerRange& range : replica.layers) layers.push_back({range.first, range.last});
    for (std::int32_t s = 0; s < replica.stages(); ++s) {
      Json of_stage = Json::array();
      for (std::int32_t t = 0; t < replica.tp; ++t) of_stage.push_back(rank++);
      ranks.push_back(of_stage);
    }
    Json& written = deployment.emplace_back(Json{{"tp", replica.tp},
                                                 {"pp", replica.stages()},
                                                 {"model_chunks", replica.model_chunks},
                                                 {"layers", layers},
                                                 {"ranks", ranks}});
    for (const costmodel::Recompute& recompute : replica.recompute)
      written["recompute"].push_back({{"kind", name(recompute.kind)}, {"layers", recompute.layers}});
    if (replica.sequence_parallel) written["sequence_parallel"] = true;
  }
  return deployment;
}

Json predicted_json(const Prediction& predicted) {
  return {{"step_seconds", predicted.step_seconds},
          {"first_step_seconds", predicted.first_step_seconds},
          {"tokens_per_second", predicted.tokens_per_second},
          {"effective_tokens_per_second", predicted.effective_tokens_per_second},
          {"data_tokens_per_second", predicted.data_tokens_per_second},
          {"bubble_ratio", predicted.bubble_ratio},
          {"gpu_utilization", predicted.gpu_utilization},
          {"stage_busy_share", predicted.stage_busy_share},
          {"peak_memory_bytes", predicted.peak_memory_bytes},
          {"held_memory_bytes", predicted.held_memory_bytes},
          {"energy_joules", predicted.energy_joules ? Json(*predicted.energy_joules) : Json(nullptr)},
          {"extrapolated_share", predicted.extrapolated_share},
          {"chunk_padding_share", predicted.chunk_padding_share}};
}

/// Per stage, "F2.0" for the forward pass of bucket 2's clock 0; "B2.0" for the backward pass.
Json order_json(const FixedPlan& fixed) {
  Json stages = Json::array();
  for (const std::vector<TemplateSlot>& slots : fixed.schedule.order) {
    std::string text;
    for (const TemplateSlot& slot : slots)
      text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", slot.backward ? 'B' : 'F', slot.bucket, slot.clock);
    stages.push_back(text);
  }
  return stages;
}

Json admissions_json(const FixedPlan& fixed) {
  Json admissions = Json::array();
  for (const Admission& admission : fixed.schedule.admissions)
    admissions.push_back({{"windows", admission.windows}, {"htasks", admission.htasks}});
  return admissions;
}

Json htasks_json(const Plan& plan) {
  Json htasks = Json::array();
  for (const std::vector<TaskIndex>& htask : plan.fixed.htasks) {
    Json names = Json::array();
    for (const TaskIndex task : htask) names.push_back(plan.workload.tasks[static_cast<std::size_t>(task)].name);
    htasks.push_back(names);
  }
  return htasks;
}

Json speeds_json(const std::vector<ReplicaSpeed>& all) {
  Json speeds = Json::array();
  for (const ReplicaSpeed& speed : all) {
    Json full = Json::array();
    for (const ReplicaSpeed::Full& microbatch : speed.full) full.push_back({microbatch.rows, microbatch.seconds});
    speeds.push_back({{"stages", speed.stages}, {"full_microbatches", full}});
  }
  return speeds;
}

Json dispatch_json(const LengthDispatch& dispatch) {
  return {{"kind", name(dispatch.kind)},
          {"interval", dispatch.interval},
          {"ranges", dispatch.ranges},
          {"fixed_ranges", dispatch.fixed_ranges},
          {"speeds", speeds_json(dispatch.speeds)},
          {"speed_of_replica", dispatch.speed_of}};
}

Json bins_json(const TokenBins& bins) {
  Json json = {
      {"capacity", bins.capacity}, {"multiple", bins.multiple}, {"search", name(bins.search)}, {"merges", bins.merges}};
  if (bins.unlike)
    json["unlike"] = {{"interval", bins.unlike->interval},
                      {"capacities", bins.unlike->capacities},
                      {"speeds", speeds_json(bins.unlike->speeds)},
                      {"speed_of_replica", bins.unlike->speed_of}};
  return json;
}

Json schedule_json(const FixedPlan& fixed) {
  return {{"template", name(fixed.schedule.pipeline)},
          {"pad_to", name(fixed.batching.padding)},
          {"turns", fixed.schedule.turns},
          {"admissions", admissions_json(fixed)},
          {"microbatches", fixed.batching.microbatches},
          {"transfer_share", fixed.schedule.transfer_share},
          {"steps_per_window", fixed.schedule.steps_per_window},
          {"order", order_json(fixed)},
          {"backbone_copies", fixed.backbone_copies},
          {"shards_weights", fixed.shards_weights},
          {"blocking_messages", fixed.schedule.blocking_messages},
          {"adapter_kernels", name(fixed.adapter_kernels)},
          {"launch_rule", name(fixed.schedule.launch_rule)}};
}

Json asked_json(const Overrides& asked) {
  Json json = Json::object();
  if (asked.tp) json["tp"] = *asked.tp;
  if (asked.pp) json["pp"] = *asked.pp;
  if (asked.microbatches) json["microbatches"] = *asked.microbatches;
  if (asked.split != LayerSplit()) json["layers"] = text_of(asked.split);
  return json;
}

Json preferred_json(const Preferred& preferred) {
  return {{"preference", name(Preference::memory)},
          {"free_memory_bytes", preferred.free_memory_bytes},
          {"fastest_step_seconds", preferred.fastest_step_seconds},
          {"fastest_peak_memory_bytes", preferred.fastest_peak_memory_bytes}};
}

}  // namespace

std::string to_json(const Plan& plan) {
  Json json;
  json["format"] = 1;
  json["workload"] = Json::parse(workload::to_json(plan.workload));
  json["cluster"] = Json::parse(workload::to_json(plan.cluster));
  json["profile"] = Json::parse(costmodel::to_json(plan.profile));
  json["hashes"] = Json::object();
  Json options = Json::object();
  for (const auto& [key, value] : plan.options) options[key] = value;
  json["policy"] = {{"name", plan.policy}, {"options", options}};
  if (plan.asked != Overrides()) json["asked"] = asked_json(plan.asked);
  if (!plan.taken.empty()) json["taken"] = plan.taken;
  if (!plan.paused.empty()) json["paused"] = plan.paused;
  json["deployment"] = deployment_json(plan.fixed);
  json["htasks"] = htasks_json(plan);
  json["buckets"] = plan.fixed.buckets;
  json["chunk_size"] = plan.fixed.batching.chunk_size;
  json["pack_length"] = plan.fixed.batching.pack_length;
  json["skips_padding"] = plan.fixed.batching.skips_padding;
  json["schedule"] = schedule_json(plan.fixed);
  if (plan.fixed.dispatch) json["dispatch"] = dispatch_json(*plan.fixed.dispatch);
  if (plan.fixed.batching.bins) json["bins"] = bins_json(*plan.fixed.batching.bins);
  json["predicted"] = predicted_json(plan.predicted);
  json["lower_bound"] = {{"step_seconds", plan.lower_bound.step_seconds},
                         {"binds", plan.lower_bound.binds},
                         {"deployment_step_seconds", plan.lower_bound.deployment_step_seconds}};
  json["gap"] =
      plan.lower_bound.step_seconds > 0 ? plan.predicted.step_seconds / plan.lower_bound.step_seconds - 1 : 0.0;
  if (plan.preferred) json["preferred"] = preferred_json(*plan.preferred);
  Json files = Json::object();
  for (const auto& [file, hash] : plan.data_hashes) files[file] = hash;
  const PlanHashes hashes = hash_plan(json.dump());
  json["hashes"] = {{"workload", hashes.workload},
                    {"cluster", hashes.cluster},
                    {"profile", hashes.profile},
                    {"files", files},
                    {"decisions", hashes.decisions}};
  json["reasons"] = plan.reasons;
  json["meta"] = {{"planning_seconds", plan.planning_seconds}};
  if (plan.truncated) json["meta"]["truncated"] = true;
  return json.dump(1) + "\n";
}

}  // namespace braid::planner
