// How much faster braid's plans are than the best of all other policies, and that none is ever faster: random workloads
// of several backbones, machines and mixes of lengths. Prints results/braid/workloads.txt; with a file's name writes
// a line for each workload there.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/random.h"
#include "costmodel/gpu/device.h"
#include "costmodel/links/link.h"
#include "costmodel/profile/profile.h"
#include "planner/policies/registry.h"
#include "planner/search/make_plan.h"
#include "sim/replay.h"

namespace {

using namespace braid;
using namespace braid::planner;

struct Machine {
  const char* name;
  const char* gpu;
  std::int64_t nodes, gpus_per_node;
  const char *intra_node, *inter_node;
};
constexpr std::array kMachines = {Machine{"4 A40, PCIe 4", "a40", 1, 4, "pcie4", "ib-100g"},
                                  Machine{"2 x 2 A40, 10 Gbit/s", "a40", 2, 2, "pcie4", "eth-10g"},
                                  Machine{"8 H100, NVSwitch", "h100", 1, 8, "nvswitch", "ib-100g"},
                                  Machine{"2 x 4 A100-80, IB 100", "a100-80", 2, 4, "nvlink", "ib-100g"}};
constexpr std::array kBackbones = {"tinyllama-1.1b", "gpt3-2.7b", "llama2-7b", "llama3.1-8b"};
constexpr std::array kMixes = {"short", "mixed", "long tail"};

struct Drawn {
  std::size_t machine = 0, backbone = 0, mix = 0;
  workload::Workload workload;
  std::vector<std::vector<workload::SampleSize>> sizes;
};

/// Lengths of a task: about alike and short, one task long and the next short, or few that are far longer than most.
std::int64_t mean_length(std::size_t mix, RandomStream& random) {
  if (mix == 0) return 64 + static_cast<std::int64_t>(random.next_below(200));
  return std::int64_t{64} << random.next_below(mix == 1 ? 5 : 4);
}

Drawn drawn(std::uint64_t seed) {
  RandomStream random(seed);
  Drawn made;
  made.machine = random.next_below(kMachines.size());
  made.backbone = random.next_below(kBackbones.size());
  made.mix = random.next_below(kMixes.size());
  made.workload.file = "random.yaml";
  made.workload.backbone = costmodel::builtin_backbone(kBackbones[made.backbone]);
  const std::int64_t most_tokens = std::min<std::int64_t>(made.workload.backbone.max_position, 8192);
  const auto tasks = 1 + random.next_below(8);
  for (std::uint64_t t = 0; t < tasks; ++t) {
    workload::Task task;
    task.name = fmt::format("t{}", t);
    task.adapter.rank = std::int64_t{8} << random.next_below(3);
    task.adapter.alpha = 16;
    task.adapter.targets = {true, true, true, true};
    task.global_batch_size = std::int64_t{4} << random.next_below(4);
    task.steps = 12;
    task.seed = t;
    task.optimizer.max_grad_norm = random.next_below(2) == 0 ? 1.0 : 0.0;
    const std::int64_t mean = mean_length(made.mix, random);
    const double sigma = made.mix == 2 ? 1.1 : 0.5;
    std::vector<workload::SampleSize>& mine = made.sizes.emplace_back();
    for (std::int64_t i = 0; i < 4 * task.global_batch_size; ++i) {
      const double length = static_cast<double>(mean) * std::exp(sigma * random.next_normal() - sigma * sigma / 2);
      const std::int64_t tokens = std::clamp<std::int64_t>(std::llround(length), 8, std::min(most_tokens, 16 * mean));
      task.max_length = std::max(task.max_length, tokens);
      mine.push_back({tokens, tokens / 2});
    }
    task.max_length = 2;
    for (const workload::SampleSize& size : mine) task.max_length = std::max(task.max_length, size.tokens);
    made.workload.tasks.push_back(std::move(task));
  }
  return made;
}

struct Outcome {
  Drawn drawn;
  double braid = 0, bound = 0, best = 0, planning = 0;
  std::string by, best_name;
  std::map<std::string, double> others;  // seconds by policy
};

double planned(const PlanningInput& input, const std::string& policy, Outcome* outcome) {
  try {
    const Plan plan = make_plan(input, parse_policy(policy));
    if (outcome) {
      outcome->bound = plan.lower_bound.step_seconds;
      outcome->planning = plan.planning_seconds;
      outcome->by = plan.reasons.front();
    }
    return plan.predicted.step_seconds;
  } catch (const Error&) {
    return INFINITY;
  }
}

Outcome outcome_of(std::uint64_t seed) {
  Outcome outcome;
  outcome.drawn = drawn(seed);
  const Drawn& made = outcome.drawn;
  const Machine& machine = kMachines[made.machine];
  workload::Cluster cluster;
  cluster.gpu = machine.gpu;
  cluster.nodes = machine.nodes;
  cluster.gpus_per_node = machine.gpus_per_node;
  const costmodel::Device& device = costmodel::device_of(machine.gpu);
  cluster.intra_node = costmodel::named_link(machine.intra_node, device);
  if (machine.nodes > 1) cluster.inter_node = costmodel::named_link(machine.inter_node, device);
  costmodel::Profile profile = costmodel::analytic_profile(machine.gpu, costmodel::DataType::bf16);
  profile.interconnect = cluster.interconnect();
  const costmodel::CostModel cost(std::move(profile));
  const workload::SampleIndex samples(made.workload.tasks, made.sizes);
  const Judge judge = [](const Program& program, const Durations& durations) {
    return sim::replay(program, durations);
  };
  const PlanningInput input{made.workload, cluster, samples, cost, judge, {}};
  outcome.braid = planned(input, "braid", &outcome);
  outcome.best = INFINITY;
  for (const auto& policy : policies()) {
    if (policy->unites()) continue;
    const double seconds = planned(input, std::string(policy->name()), nullptr);
    outcome.others[std::string(policy->name())] = seconds;
    if (seconds >= outcome.best) continue;
    outcome.best = seconds;
    outcome.best_name = policy->name();
  }
  return outcome;
}

void print_rows(const std::string& title, const std::map<std::string, std::vector<const Outcome*>>& rows) {
  fmt::print("\n{:<24} {:>9} {:>10} {:>10} {:>10} {:>10}\n", title, "workloads", "mean gain", "best gain", "least gain",
             "over bound");
  for (const auto& [name, outcomes] : rows) {
    double sum = 0, most = 0, least = INFINITY, over = 0;
    for (const Outcome* one : outcomes) {
      const double gain = one->best / one->braid;
      sum += std::log(gain);
      most = std::max(most, gain);
      least = std::min(least, gain);
      over += one->braid / one->bound - 1;
    }
    const auto count = static_cast<double>(outcomes.size());
    fmt::print("{:<24} {:>9} {:>9.2f}x {:>9.2f}x {:>9.3f}x {:>8.1f} %\n", name, outcomes.size(), std::exp(sum / count),
               most, least, 100 * over / count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1000;
  std::vector<Outcome> outcomes(static_cast<std::size_t>(count));
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < count; ++i) outcomes[static_cast<std::size_t>(i)] = outcome_of(static_cast<std::uint64_t>(i));
  std::map<std::string, std::vector<const Outcome*>> all, machines, backbones, mixes, tasks, best;
  int slower = 0, nothing = 0, below_bound = 0;
  std::vector<double> planning;
  for (const Outcome& one : outcomes) {
    if (std::isinf(one.braid)) {
      nothing += std::isinf(one.best) ? 1 : 0;
      slower += std::isinf(one.best) ? 0 : 1;
      continue;
    }
    slower += one.braid > one.best ? 1 : 0;
    below_bound += one.braid < one.bound ? 1 : 0;
    planning.push_back(one.planning);
    all["all"].push_back(&one);
    machines[kMachines[one.drawn.machine].name].push_back(&one);
    backbones[kBackbones[one.drawn.backbone]].push_back(&one);
    mixes[kMixes[one.drawn.mix]].push_back(&one);
    const std::size_t number = one.drawn.workload.tasks.size();
    tasks[number == 1 ? "1 task" : number <= 4 ? "2 to 4 tasks" : "5 to 8 tasks"].push_back(&one);
    best[one.best_name].push_back(&one);
  }
  std::sort(planning.begin(), planning.end());
  fmt::print(
      "{} random workloads. Predicted slower than one of the other policies, each by its own options: {}. Below\n"
      "its lower bound: {}. Nothing fits under any policy: {}. Gain: step of the fastest other policy / step of "
      "braid.\n",
      count, slower, below_bound, nothing);
  print_rows("", all);
  print_rows("machine", machines);
  print_rows("backbone", backbones);
  print_rows("lengths", mixes);
  print_rows("tasks", tasks);
  print_rows("fastest other policy", best);
  fmt::print("\n{:<24} {:>9} {:>10} {:>10} {:>10}\n", "policy / braid", "it fits", "mean", "most", "least");
  for (const auto& policy : policies()) {
    if (policy->unites()) continue;
    double sum = 0, most = 0, least = INFINITY, fits = 0;
    for (const Outcome* one : all["all"]) {
      const double ratio = one->others.at(std::string(policy->name())) / one->braid;
      if (std::isinf(ratio)) continue;
      sum += std::log(ratio), ++fits;
      most = std::max(most, ratio);
      least = std::min(least, ratio);
    }
    if (fits > 0)
      fmt::print("{:<24} {:>9} {:>9.2f}x {:>9.2f}x {:>9.3f}x\n", policy->name(), fits, std::exp(sum / fits), most,
                 least);
  }
  if (argc > 2) {
    std::ofstream file(argv[2]);
    file << "seed,machine,backbone,lengths,tasks,braid_seconds,bound_seconds,best_other_seconds,best_other,as\n";
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Outcome& one = outcomes[i];
      if (std::isinf(one.braid)) continue;
      const std::string by = one.by.substr(one.by.find("by ") + 3);
      file << fmt::format("{},\"{}\",{},{},{},{:.6g},{:.6g},{:.6g},{},\"{}\"\n", i, kMachines[one.drawn.machine].name,
                          kBackbones[one.drawn.backbone], kMixes[one.drawn.mix], one.drawn.workload.tasks.size(),
                          one.braid, one.bound, one.best, one.best_name, by.substr(0, by.find(',')));
    }
  }
  if (!planning.empty())
    fmt::print(stderr, "planning braid: median {:.2f} s, most {:.2f} s\n", planning[planning.size() / 2],
               planning.back());
  return slower > 0 || below_bound > 0 ? 1 : 0;
}
