// How fast a device computes what fine-tuning is made of, beside its frozen products alone:
//   gpu_benchmark [cuda|cuda-joined|cuda-f32|cpu] [tokens] [width,width,...] [runs]
// A line a case: LoRA beside a frozen layer of that width, of 1, 4 and 16 tasks of rank 16 that share the tokens, with
// dropout and without, in the designs of lora_designs.h, forward and backward, medians of runs on random numbers by the
// device's own clock (0 runs: each once, for profilers); whether the designs agree; then a decoder layer of
// Llama-3.1-8B's shape, or as wide as the first width, forward and backward in rows of a quarter of the tokens.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "base/statistics.h"
#include "benchmarks/lora_designs.h"
#include "exec/objectives/token_losses.h"
#include "exec/stage_model.h"
#include "planner/program/load.h"

namespace braid::exec {
namespace {

constexpr std::int64_t kRank = LoraDesigns::kRank;
int runs = 20;

/// The median of the device's seconds for `work`, after a run to warm up, or of that alone.
template <typename Work>
double seconds_of(kernels::Device& device, const Work& work) {
  std::vector<double> seconds;
  for (int run = 0; run <= runs; ++run) {
    const std::unique_ptr<kernels::Event> begun = device.record();
    work();
    const std::unique_ptr<kernels::Event> ended = device.record();
    device.wait();
    if (run > 0 || runs == 0)
      seconds.push_back(std::chrono::duration<double>(*ended->ended() - *begun->ended()).count());
  }
  return median(std::move(seconds));
}

/// Whether the designs agree.
bool designs_agree(kernels::Device& device, std::int64_t width, std::int64_t tokens, std::int64_t tenants,
                   float dropout) {
  BufferPool pool(device);
  const double difference = LoraDesigns(pool, width, tokens, tenants, dropout).difference();
  if (difference < 2e-2) return true;
  fmt::print("of {} tenants with dropout {} on {} tokens of {} the designs' results lie {:.1e} apart\n", tenants,
             dropout, tokens, width, difference);
  return false;
}

void measure_lora(kernels::Device& device, std::int64_t width, std::int64_t tokens, std::int64_t tenants,
                  float dropout) {
  BufferPool pool(device);
  LoraDesigns lora(pool, width, tokens, tenants, dropout);
  const auto time = [&](auto work) { return seconds_of(device, [&] { (lora.*work)(); }); };
  const double forward = time(&LoraDesigns::frozen_forward), backward = time(&LoraDesigns::frozen_backward);
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(width * width);
  const auto tell = [&](const char* design, double there, double back) {
    fmt::print("{:>6} {:>7} {:>6} {:>8} {:<12} {:>11.4f} {:>12.4f} {:>9.3f} {:>9.3f} {:>8.1f}\n", width, tokens,
               tenants, dropout, design, there * 1e3, back * 1e3, there / forward, back / backward,
               flops / there * 1e-12);
    std::fflush(stdout);
  };
  tell("frozen alone", forward, backward);
  tell("second pass", time(&LoraDesigns::second_pass_forward), time(&LoraDesigns::second_pass_backward));
  tell("extended K", time(&LoraDesigns::extended_forward), time(&LoraDesigns::extended_backward));
  if (lora.joined_forward()) tell("joined", time(&LoraDesigns::joined_forward), time(&LoraDesigns::joined_backward));
  if (dropout == 0 || !device.drops_in_products()) return;
  lora.mask_first();
  tell("masked first", time(&LoraDesigns::second_pass_forward), time(&LoraDesigns::second_pass_backward));
}

void measure_layer(kernels::Device& device, std::int64_t width, std::int64_t tokens) {
  costmodel::BackboneShape shape = costmodel::builtin_backbone("llama3.1-8b");
  shape.layers = 2;  // of which the upper one passes gradients on
  shape.vocabulary = 256;
  if (width < shape.hidden) {
    shape.hidden = width, shape.intermediate = 2 * width;
    shape.heads = 4, shape.kv_heads = 2, shape.head_dim = width / 4;
  }
  costmodel::AdapterShape adapter;
  adapter.rank = kRank, adapter.alpha = 2 * kRank;
  adapter.targets = costmodel::kSeparateModules;
  BufferPool pool(device);
  Probe probe(device);
  const planner::LayerRange layers{0, 2};
  StageModel model(Shard(shape), layers, {}, random_weights(shape, device.kernels(), costmodel::DataType::bf16), pool,
                   probe);
  std::vector<std::unique_ptr<Adapter>> adapters;
  adapters.push_back(std::make_unique<Adapter>(shape, adapter, layers, 1));
  adapters.back()->move_to(device);
  const std::vector<std::uint64_t> seeds = {1};
  workload::Dataset dataset;
  planner::Microbatch microbatch;
  for (std::int32_t row = 0; row < 4; ++row) {
    workload::Sample& sample = dataset.samples.emplace_back();
    for (std::int64_t t = 0; t < tokens / 4; ++t) sample.append(static_cast<std::int32_t>((7 * t + row) % 256), t < 2);
    planner::Segment& segment = microbatch.segments.emplace_back();
    segment.index = row, segment.sample = row, segment.end = static_cast<std::int32_t>(tokens / 4), segment.scored = 1;
  }
  TokenLosses losses({1.0});
  const double seconds = seconds_of(device, [&] {
    run_whole(model.forward(0, make_batch(microbatch, {&dataset, 1}), {}, adapters, seeds, losses));
    run_whole(model.backward(0, {}, adapters, seeds));
  });
  const costmodel::MicrobatchLoad load = planner::load_of(microbatch, {&adapter, 1});
  double flops = 0;
  for (const costmodel::Pass pass : {costmodel::Pass::forward, costmodel::Pass::backward})
    flops += costmodel::backbone_flops(
        costmodel::stage_operators(shape, {2, true, true}, load, pass, costmodel::cpu_storage()));
  fmt::print(
      "two layers of hidden {} and feed-forward {}, LoRA on all linears, {} tokens in 4 rows: {:.3f} ms, {:.1f} "
      "TFLOP/s\n",
      shape.hidden, shape.intermediate, tokens, seconds * 1e3, flops / seconds * 1e-12);
}

std::unique_ptr<kernels::Device> make_device(std::string_view name) {
  using kernels::Arithmetic;
  if (name == "cpu") return kernels::make_cpu_device();
  return kernels::make_cuda_device(0, name == "cuda-f32"      ? Arithmetic::f32
                                      : name == "cuda-joined" ? Arithmetic::joined
                                                              : Arithmetic::bf16);
}

int run(int count, char** words) {
  const std::string name = count > 1 ? words[1] : "cuda";
  const std::int64_t tokens = count > 2 ? std::atoll(words[2]) : 8192;
  std::vector<std::int64_t> widths;
  std::stringstream list(count > 3 ? words[3] : "4096,5120,8192");
  for (std::string width; std::getline(list, width, ',');) widths.push_back(std::atoll(width.c_str()));
  if (count > 4) runs = std::atoi(words[4]);
  std::unique_ptr<kernels::Device> device = make_device(name);
  for (const std::string& version : device->library_versions()) fmt::print("{}\n", version);
  fmt::print("{:>6} {:>7} {:>6} {:>8} {:<12} {:>11} {:>12} {:>9} {:>9} {:>8}\n", "width", "tokens", "tasks", "dropout",
             "design", "forward ms", "backward ms", "forward/", "backward/", "TFLOP/s");
  bool agree = true;
  for (const std::int64_t tenants : {1, 4, 16}) {
    for (const float dropout : {0.0F, 0.1F}) {
      agree = designs_agree(*device, 128, 96, tenants, dropout) && agree;
      for (const std::int64_t width : widths) measure_lora(*device, width, tokens, tenants, dropout);
    }
  }
  // And of many tiles, once.
  agree = designs_agree(*device, widths.front(), tokens, 4, 0.1F) && agree;
  fmt::print("{}: ", name);
  measure_layer(*device, widths.front(), tokens);
  if (name == "cuda") {
    device.reset();  // one at a time
    fmt::print("cuda-joined: ");
    measure_layer(*make_device("cuda-joined"), widths.front(), tokens);
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace braid::exec

int main(int count, char** words) {
  try {
    return braid::exec::run(count, words);
  } catch (const std::exception& failure) {
    fmt::print(stderr, "error: {}\n", failure.what());
    return 1;
  }
}
