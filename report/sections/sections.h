#pragma once

#include <filesystem>

#include "base/node.h"
#include "report/page.h"
#include "report/report.h"
#include "report/sources/plan_summary.h"
#include "report/sources/trace.h"
#include "report/sources/training_run.h"

namespace braid::report {

/// One function a kind of result. `source` is what it was read from.
Section plan_section(const PlanSummary& plan, const ReportTools& tools);
Section trace_section(Trace trace, const std::filesystem::path& source);
Section cluster_trace_section(const Trace& trace, const std::filesystem::path& source);
Section validation_section(const Node& validation, const std::filesystem::path& source);
Section comparison_section(const Node& comparison, const std::filesystem::path& source);
Section run_section(const TrainingRun& run, const ReportTools& tools);
Section cluster_section(const std::filesystem::path& folder);

bool is_validation(const Node& node);
bool is_comparison(const Node& node);
bool is_cluster_study(const std::filesystem::path& folder);

/// Pictures that several kinds share: streams of ranks over time, predicted above measured where both are there, and
/// what each rank holds over time beside its limit.
Figure pipeline_figure(const std::vector<std::pair<std::string, Trace>>& traces);
Figure memory_figure(const std::vector<std::pair<std::string, Trace>>& traces, std::optional<double> limit);

}  // namespace braid::report
