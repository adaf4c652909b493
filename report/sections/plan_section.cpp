#include <fmt/core.h>
#include <fmt/ranges.h>

#include "report/sections/sections.h"

namespace braid::report {

Section plan_section(const PlanSummary& plan, const ReportTools& tools) {
  const Unit unit = unit_of_seconds(plan.step_seconds);
  Section section{
      fmt::format("Plan: {} on {} {} rank{}", plan.policy, plan.ranks, plan.gpu, plan.ranks == 1 ? "" : "s"),
      plan.file.string()};
  section.paragraphs.push_back(
      fmt::format("{} task{} on {} ({}), {} a global batch. A step of every task takes {} {}; no plan of this policy "
                  "takes less than {} {} ({}), so at most {:.1f} % could be gained.",
                  plan.tasks.size(), plan.tasks.size() == 1 ? "" : "s", plan.backbone, plan.deployment,
                  plan.microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", plan.microbatches),
                  number_text(unit.of(plan.step_seconds)), unit.name, number_text(unit.of(plan.bound_seconds)),
                  unit.name, plan.bound_by, 100 * (1 - plan.bound_seconds / plan.step_seconds)));
  section.table = {{"predicted", "value"},
                   {{"step", number_text(unit.of(plan.step_seconds)) + " " + unit.name},
                    {"computed tokens a second", number_text(plan.tokens_per_second)},
                    {"data tokens a second", number_text(plan.data_tokens_per_second)},
                    {"bubble ratio", fmt::format("{:.1f} %", 100 * plan.bubble_ratio)},
                    {"share of the ranks' peak rate", fmt::format("{:.1f} %", 100 * plan.utilization)}}};
  std::string why;
  const std::string text = tools.predict ? tools.predict(plan.file, why) : "";
  if (!text.empty()) {
    Trace trace = trace_from(parse_json(text, plan.file.string()));
    trace.shift_to_zero();
    section.figures.push_back(pipeline_figure({{"predicted", trace}}));
    section.figures.push_back(memory_figure({{"predicted", std::move(trace)}}, plan.memory_bytes));
  } else if (!why.empty()) {
    section.paragraphs.push_back("Its pipeline is not drawn: " + why + ".");
  }
  section.remarks_title = "why the plan is what it is";
  section.remarks = plan.reasons;
  return section;
}

Section trace_section(Trace trace, const std::filesystem::path& source) {
  trace.shift_to_zero();
  Section section{fmt::format("Timeline of {} rank{}", trace.ranks.size(), trace.ranks.size() == 1 ? "" : "s"),
                  source.string()};
  if (trace.events.empty()) {
    section.paragraphs.emplace_back("It holds no instructions.");
    return section;
  }
  section.figures.push_back(pipeline_figure({{"all ranks", trace}}));
  if (Figure memory = memory_figure({{"", trace}}, {}); !memory.html.empty())
    section.figures.push_back(std::move(memory));
  return section;
}

}  // namespace braid::report
