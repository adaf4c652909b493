#include "studies/costmodel/measured_steps.h"

#include <charconv>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "base/error.h"
#include "base/statistics.h"
#include "costmodel/profile/cost_model.h"
#include "costmodel/work/memory.h"
#include "studies/costmodel/reference_table.h"

namespace braid::costmodel::studies {
namespace {

constexpr const char* kColumns =
    "backbone,layers,batch,sequence,recompute,attention,adapter_dtype,dropout,targets,forward_seconds,forward_spread,"
    "backward_seconds,backward_spread,forward_kernel_seconds,forward_kernels,backward_kernel_seconds,backward_kernels,"
    "bytes_before,bytes_kept,bytes_peak,error";

struct MeasuredStep {
  std::string backbone;
  StageShape stage;
  MicrobatchLoad load;
  AttentionKind attention = AttentionKind::flash;
  std::string adapters;                                    ///< in words
  double kernel_seconds[2] = {0, 0}, seconds[2] = {0, 0};  ///< forward, backward; kernels' 0: not measured
  Bytes kept = 0, peak = 0;
};

double number(const ReferenceRow& row, std::size_t column) {
  const std::string& text = row.text(column);
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size())
    throw error_at(row.file, row.line, fmt::format("'{}' is no number", text), "measure the table again");
  return value;
}

MeasuredStep step_of(const ReferenceRow& row) {
  MeasuredStep step;
  step.backbone = row.text(0);
  const std::int64_t layers = row.integer(1), batch = row.integer(2), sequence = row.integer(3);
  step.stage = {layers, true, true};
  step.stage.recompute = {recompute_kind_of(row.text(4)), layers};
  if (row.text(5) == "eager") step.attention = AttentionKind::eager;
  AdapterShape adapter;
  adapter.rank = 16;
  adapter.dropout = number(row, 7);
  for (const Module module : kModules)
    adapter.targets[static_cast<std::size_t>(module)] =
        row.integer(8) == 7 || module == Module::q || module == Module::v;
  step.adapters = fmt::format("{} targets, dropout {}, {}", row.text(8), row.text(7), row.text(6));
  step.load.tokens = batch * sequence;
  step.load.scored = batch * (sequence - 1);
  step.load.sequences.assign(static_cast<std::size_t>(batch), {0, sequence});
  step.load.tasks = {{adapter, step.load.tokens}};
  step.seconds[0] = row.number(9), step.seconds[1] = row.number(11);
  if (!row.text(13).empty()) step.kernel_seconds[0] = row.number(13), step.kernel_seconds[1] = row.number(15);
  step.kept = row.integer(18), step.peak = row.integer(19);
  return step;
}

struct StepErrors {
  std::vector<double> kernels, step, layer_stash, peak;
};

void print_errors_of(const std::string& what, const std::vector<double>& signed_errors) {
  if (signed_errors.empty()) return;
  double mean = 0, bias = 0, worst = 0;
  for (const double error : signed_errors) {
    mean += std::abs(error) / static_cast<double>(signed_errors.size());
    bias += error / static_cast<double>(signed_errors.size());
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  fmt::print("  {:44} {:>5} {:>8.1f} % {:>+8.1f} % {:>+8.1f} %\n", what, signed_errors.size(), 100 * mean, 100 * bias,
             100 * worst);
}

CostModel cost_of(const std::string& gpu_or_profile, AttentionKind attention) {
  Profile profile =
      find_device(gpu_or_profile) ? analytic_profile(gpu_or_profile, DataType::bf16) : read_profile(gpu_or_profile);
  profile.attention = attention;
  return CostModel(std::move(profile));
}

}  // namespace

void print_measured_steps(const std::filesystem::path& csv, const std::string& gpu_or_profile) {
  const CostModel flash = cost_of(gpu_or_profile, AttentionKind::flash),
                  eager = cost_of(gpu_or_profile, AttentionKind::eager);
  std::map<std::string, StepErrors> groups;
  std::map<std::string, Bytes> shallow;  // kept at the lesser depth, and its layers
  std::map<std::string, std::int64_t> shallow_layers;
  for (const ReferenceRow& row : read_reference_table(csv, kColumns)) {
    if (!row.text(20).empty()) continue;
    const MeasuredStep step = step_of(row);
    const CostModel& cost = step.attention == AttentionKind::flash ? flash : eager;
    const BackboneShape backbone = builtin_backbone(step.backbone);
    const Storage storage = cost.storage();
    const std::string key = fmt::format("{} {} {} {} {}", row.text(0), row.text(2), row.text(3), row.text(4),
                                        row.text(5) + row.text(6) + row.text(7) + row.text(8));
    const bool deep = shallow.contains(key);
    if (!deep) shallow[key] = step.kept, shallow_layers[key] = step.stage.layers;
    const std::string sizes = step.load.tokens < 1024   ? "tokens below 1,024"
                              : step.load.tokens < 8192 ? "tokens 1,024 to 8,191"
                                                        : "tokens 8,192 and more";
    std::vector<StepErrors*> of = {&groups["all"], &groups["recompute " + row.text(4)], &groups[step.backbone],
                                   &groups[sizes], &groups[row.text(5) + ", " + step.adapters]};
    for (StepErrors* errors : of) {
      // The model has all of the loss and the head in the Forward.
      PassWork work;
      for (const Pass pass : {Pass::forward, Pass::backward})
        work += cost.work(stage_operators(backbone, step.stage, step.load, pass, storage));
      const double measured = step.seconds[0] + step.seconds[1],
                   kernels = step.kernel_seconds[0] + step.kernel_seconds[1];
      errors->step.push_back(work.total().seconds / measured - 1);
      if (kernels > 0) errors->kernels.push_back(work.calls.seconds / kernels - 1);
      if (!deep) continue;
      const auto further = static_cast<double>(step.stage.layers - shallow_layers[key]);
      const double kept = static_cast<double>(step.kept - shallow[key]) / further;
      const Bytes told = layer_stash_bytes(backbone, step.stage, step.load, storage, step.stage.recompute.kind);
      errors->layer_stash.push_back(static_cast<double>(told) / kept - 1);
      const Bytes peak = stash_bytes(backbone, step.stage, step.load, storage) +
                         std::max(workspace_bytes(backbone, step.stage, step.load, Pass::forward, storage),
                                  workspace_bytes(backbone, step.stage, step.load, Pass::backward, storage));
      errors->peak.push_back(static_cast<double>(peak) / static_cast<double>(step.peak) - 1);
    }
  }
  fmt::print("predicted / measured - 1, by {}\n", gpu_or_profile.substr(gpu_or_profile.rfind('/') + 1));
  using Member = std::vector<double> StepErrors::*;
  for (const auto& [what, member] :
       {std::pair<const char*, Member>("kernels of a Forward and a Backward", &StepErrors::kernels),
        {"a Forward and a Backward by the clock", &StepErrors::step},
        {"what a layer keeps", &StepErrors::layer_stash},
        {"the most that a step holds beside weights", &StepErrors::peak}}) {
    fmt::print("{}\n  {:44} {:>5} {:>10} {:>10} {:>10}\n", what, "", "rows", "mean", "bias", "worst");
    for (const auto& [group, errors] : groups) print_errors_of(group, errors.*member);
  }
}

}  // namespace braid::costmodel::studies
