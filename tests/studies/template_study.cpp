// How good MuxTune's structured template is (§3.4.1, appendix A), on random pipelines: what its rules are worth, how
// far it is from the optimum, when the last stage idles, what chunk groups cost. Prints results/muxtune/template.txt.
#include "planner/template_study.h"

#include <limits>

#include <fmt/core.h>

#include "planner/muxtune/bucket_order.h"
#include "planner/optimal_pipeline.h"

namespace braid::planner::testing {
namespace {

constexpr std::uint64_t kSeed = 17;

std::string memory_name(double groups) {
  return groups > 0 ? fmt::format("{:g}", groups) : "any";
}

double least_of_orders(const PipelineInstance& instance) {
  PipelineSimulator simulator(instance.jobs, instance.stages, instance.memory, instance.messages);
  return static_cast<double>(search_bucket_order(simulator, {}, 2000).makespan);
}

double template_of(const PipelineInstance& instance) {
  return static_cast<double>(schedule_of(instance, {}).makespan);
}

void print_rules() {
  constexpr int kInstances = 1000;
  fmt::print(
      "Rules: makespan without a rule / with all, mean of {} pipelines; six buckets of up to eight microbatches.\n"
      "Memory is in groups of the largest need a stage.\n\n"
      "stages  memory  descending  consecutive  eager  backward first  none of rules 1 to 3  all / bound\n",
      kInstances);
  for (const int stages : {2, 4, 8}) {
    for (const double warm_ups : {0.0, 1.0, 2.0}) {
      StudyShape shape;
      shape.stages = stages;
      shape.memory = warm_ups * stages;
      const RuleEffects effects = study_rules(shape, kInstances, kSeed);
      fmt::print("{:6}  {:>6}  {:10.3f}  {:11.3f}  {:5.3f}  {:14.3f}  {:20.3f}  {:11.3f}\n", stages,
                 memory_name(shape.memory), effects.descending.mean, effects.consecutive.mean, effects.eager.mean,
                 effects.backward_first.mean, effects.plain_1f1b.mean, effects.bound.mean);
    }
  }
}

void print_rules_by_load() {
  constexpr int kInstances = 300;
  fmt::print(
      "\nRules 1 to 3 by load: makespan without them / with all, mean of {} pipelines; four stages, all memory.\n"
      "Spread: the longest possible microbatch over the shortest.\n\n"
      "buckets  most microbatches  spread 1  spread 2  spread 4  spread 8\n",
      kInstances);
  for (const int buckets : {2, 4, 6, 8}) {
    for (const int most_jobs : {1, 2, 8, 32}) {
      fmt::print("{:7}  {:17}", buckets, most_jobs);
      for (const double spread : {1.0, 2.0, 4.0, 8.0}) {
        StudyShape shape;
        shape.buckets = buckets;
        shape.most_jobs = most_jobs;
        shape.spread = spread;
        fmt::print("  {:8.3f}", study_rules(shape, kInstances, kSeed).plain_1f1b.mean);
      }
      fmt::print("\n");
    }
  }
}

void print_optimum() {
  constexpr int kInstances = 200;
  fmt::print(
      "\nOptimum: makespan / the least of all schedules, by branch and bound; four buckets of one microbatch, {} "
      "pipelines.\nUneven: stages take up to so much more than others.\n\n"
      "stages  uneven  memory   template: mean  worst  optimal   searched order: mean  worst  optimal\n",
      kInstances);
  for (const int stages : {2, 3}) {
    for (const double unevenness : {0.0, 0.3}) {
      for (const double memory : {0.0, 1.5, 3.0}) {
        StudyShape shape;
        shape.stages = stages;
        shape.buckets = 4;
        shape.most_jobs = 1;
        shape.unevenness = unevenness;
        shape.memory = memory;
        RandomStream random(kSeed);
        Ratios descending, searched;
        int descending_optimal = 0, searched_optimal = 0;
        for (int i = 0; i < kInstances; ++i) {
          const PipelineInstance instance = random_instance(shape, random);
          const double made = template_of(instance), best_order = least_of_orders(instance);
          const auto optimum =
              static_cast<double>(OptimalPipeline(instance).least_below(std::numeric_limits<Nanoseconds>::max()));
          descending.add(made / optimum);
          searched.add(best_order / optimum);
          descending_optimal += made == optimum;
          searched_optimal += best_order == optimum;
        }
        fmt::print("{:6}  {:6.1f}  {:>6}  {:15.3f}  {:5.2f}  {:5.0f} %  {:21.3f}  {:5.2f}  {:5.0f} %\n", stages,
                   unevenness, memory_name(memory), descending.mean, descending.most,
                   100.0 * descending_optimal / kInstances, searched.mean, searched.most,
                   100.0 * searched_optimal / kInstances);
      }
    }
  }
}

/// What `measured` gives for each of many pipelines of a shape.
template <class Measured>
Ratios over_instances(const StudyShape& shape, int count, Measured measured) {
  RandomStream random(kSeed);
  Ratios ratios;
  for (int i = 0; i < count; ++i) ratios.add(measured(random_instance(shape, random)));
  return ratios;
}

void print_orders() {
  constexpr int kInstances = 300;
  fmt::print(
      "\nOrders: makespan in descending order / in the best order that a search found (`order=searched`), {} "
      "pipelines.\n\nstages  buckets  most microbatches   mean  worst\n",
      kInstances);
  for (const int stages : {4, 8}) {
    for (const int buckets : {3, 6, 12}) {
      for (const int most_jobs : {1, 8, 32}) {
        StudyShape shape;
        shape.stages = stages;
        shape.buckets = buckets;
        shape.most_jobs = most_jobs;
        const Ratios gain = over_instances(shape, kInstances, [](const PipelineInstance& instance) {
          return template_of(instance) / least_of_orders(instance);
        });
        fmt::print("{:6}  {:7}  {:17}  {:5.3f}  {:5.2f}\n", stages, buckets, most_jobs, gain.mean, gain.most);
      }
    }
  }
}

void print_idle() {
  constexpr int kInstances = 2000;
  fmt::print(
      "\nTheorem 2: pipelines of {} in which the last stage idles between its first and its last pass, and for how "
      "much of the makespan\nwhere it does; four stages, all memory.\n\nuneven  chunks of a group  idle     "
      "share of makespan\n",
      kInstances);
  for (const double unevenness : {0.0, 0.1, 0.2, 0.5}) {
    for (const std::int32_t chunks : {1, 4}) {
      StudyShape shape;
      shape.unevenness = unevenness;
      shape.chunks = chunks;
      RandomStream random(kSeed);
      Ratios idle;
      for (int i = 0; i < kInstances; ++i) {
        const PipelineInstance instance = random_instance(shape, random);
        const PipelineSchedule schedule = schedule_of(instance, {});
        const Nanoseconds nanoseconds = idle_of_last_stage(instance, schedule);
        if (nanoseconds > 0) idle.add(static_cast<double>(nanoseconds) / static_cast<double>(schedule.makespan));
      }
      fmt::print("{:6.1f}  {:17}  {:4.1f} %  {:.2f} %\n", unevenness, chunks, 100.0 * idle.count / kInstances,
                 100 * idle.mean);
    }
  }
}

/// The same microbatches, each free of its group.
PipelineInstance ungrouped(const PipelineInstance& instance) {
  PipelineInstance free = instance;
  free.jobs.clear();
  for (PipelineJob job : instance.jobs) {
    const std::int32_t chunks = std::exchange(job.chunks, 1);
    free.jobs.insert(free.jobs.end(), static_cast<std::size_t>(chunks), job);
  }
  return free;
}

void print_groups() {
  constexpr int kInstances = 500;
  fmt::print(
      "\nChunk groups: makespan / that of the same microbatches without keys and values between them, {} pipelines "
      "of four\nbuckets, up to four groups a bucket.\n\nstages  chunks of a group  memory   mean  worst\n",
      kInstances);
  for (const int stages : {2, 4, 8}) {
    for (const std::int32_t chunks : {2, 4, 8}) {
      for (const double memory : {0.0, 2.0}) {
        StudyShape shape;
        shape.stages = stages;
        shape.buckets = 4;
        shape.most_jobs = 4;
        shape.chunks = chunks;
        shape.memory = memory;
        const Ratios cost = over_instances(shape, kInstances, [](const PipelineInstance& instance) {
          return template_of(instance) / template_of(ungrouped(instance));
        });
        fmt::print("{:6}  {:17}  {:>6}  {:5.3f}  {:5.2f}\n", stages, chunks, memory_name(memory), cost.mean, cost.most);
      }
    }
  }
}

}  // namespace
}  // namespace braid::planner::testing

int main() {
  fmt::print("# scripts/reproduce.sh muxtune\n\n");
  braid::planner::testing::print_rules();
  braid::planner::testing::print_rules_by_load();
  braid::planner::testing::print_optimum();
  braid::planner::testing::print_orders();
  braid::planner::testing::print_idle();
  braid::planner::testing::print_groups();
}
