#include "studies/costmodel/papers.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "studies/costmodel/mlora_facts.h"
#include "studies/costmodel/paper_facts.h"

namespace braid::costmodel::studies {
namespace {

using Json = nlohmann::ordered_json;

std::string papers_json() {
  Json json = {{"format", 1}, {"facts", Json::array()}, {"launches", Json::array()}, {"memory_fits", Json::array()}};
  for (const PaperFact& fact : paper_facts()) {
    json["facts"].push_back({{"source", fact.source},
                             {"what", fact.what},
                             {"unit", fact.unit},
                             {"paper", fact.paper},
                             {"ours", fact.ours}});
  }
  for (const LaunchFact& fact : launch_facts()) {
    json["launches"].push_back({{"backbone", fact.backbone},
                                {"runs", fact.runs},
                                {"tasks", fact.tasks},
                                {"adapter_launches", fact.adapter_launches},
                                {"launches", fact.launches},
                                {"launch_seconds", fact.launch_seconds},
                                {"kernel_seconds", fact.kernel_seconds},
                                {"step_seconds", fact.step_seconds},
                                {"launch_share", fact.launch_share()}});
  }
  for (const MemoryFitFact& fact : memory_fit_facts()) {
    json["memory_fits"].push_back({{"backbone", fact.backbone},
                                   {"points", fact.points},
                                   {"least_tokens", fact.least_tokens},
                                   {"mean_error", fact.mean_error},
                                   {"worst_error", fact.worst_error}});
  }
  return json.dump(1) + "\n";
}

}  // namespace

void print_papers(bool json) {
  if (json) {
    fmt::print("{}", papers_json());
    return;
  }
  fmt::print("{:20} {:48} {:>8} {:>8} {:>8}\n", "paper", "", "paper", "ours", "ratio");
  for (const PaperFact& fact : paper_facts()) {
    fmt::print("{:20} {:48} {:>7.2f}{} {:>7.2f}{} {:>7.2f}\n", fact.source, fact.what, fact.paper, fact.unit, fact.ours,
               fact.unit, fact.ours / fact.paper);
  }
}

}  // namespace braid::costmodel::studies
