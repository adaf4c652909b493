// Where LoRAPP's GPipe mode misses the closed form of mLoRA §3.2.2. Prints results/mlora/gpipe.txt.
#include <fmt/core.h>

#include "planner/lora_pipeline.h"

namespace braid::planner::testing {
namespace {

constexpr double kRounding = 1e-9;

/// A mode's misses among all cases, with backward passes so many times as long as forward passes.
struct Misses {
  int count = 0;
  double most = 0;
  LoraCase worst;
};

template <class Visit>
Misses find_misses(LoraPipeline mode, Nanoseconds backward_ratio, const Visit& visit) {
  constexpr Nanoseconds kForward = 10;
  Misses misses;
  for (const LoraCase& one : lora_cases()) {
    const double ours = lora_bubble_ratio(one, mode, kForward, backward_ratio * kForward);
    const double form = lora_closed_form(one);
    if (ours <= form + kRounding) continue;
    ++misses.count;
    if (ours - form > misses.most + kRounding) misses.most = ours - form, misses.worst = one;
    visit(one, form, ours);
  }
  return misses;
}

void print_summary() {
  fmt::print(
      "L tasks on D stages, N microbatches each, L, D, N = 1 to 8; bubble ratio in mid-stream, messages free.\n"
      "Closed form: max((D - 1 + N - L N) / (D + N - 1), 0).\n\n"
      "mode   backward / forward  cases  above the form  most    at\n");
  for (const auto& [name, mode] :
       {std::pair("1f1b", LoraPipeline::one_forward_one_backward), std::pair("gpipe", LoraPipeline::gpipe)}) {
    for (const Nanoseconds ratio : {1, 2}) {
      const Misses misses = find_misses(mode, ratio, [](const LoraCase&, double, double) {});
      fmt::print("{:5}  {:18}  {:5}  {:14}  {:+.3f}", name, ratio, lora_cases().size(), misses.count, misses.most);
      if (misses.count > 0)
        fmt::print("  L {}, D {}, N {}", misses.worst.tasks, misses.worst.stages, misses.worst.microbatches);
      fmt::print("\n");
    }
  }
}

void print_gpipe_misses() {
  fmt::print("\nGPipe mode, backward passes as long as forward passes: all that are above the form.\n\n");
  fmt::print("L  D  N  closed form   ours   more\n");
  find_misses(LoraPipeline::gpipe, 1, [](const LoraCase& one, double form, double ours) {
    fmt::print("{}  {}  {}  {:11.3f}  {:.3f}  {:.3f}\n", one.tasks, one.stages, one.microbatches, form, ours,
               ours - form);
  });
}

}  // namespace
}  // namespace braid::planner::testing

int main() {
  fmt::print("# scripts/reproduce.sh mlora\n\n");
  braid::planner::testing::print_summary();
  braid::planner::testing::print_gpipe_misses();
}
