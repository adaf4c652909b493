// How fast a device computes what fine-tuning is made of, beside its frozen products alone:
//   gpu_benchmark [cuda|cuda-f32|cpu] [tokens] [width,width,...] [runs]
// A line a case: LoRA beside a frozen layer of that width, of 1, 4 and 16 tasks of rank 16 that share the tokens, with
// dropout and without, in the designs of lora_designs.h, forward and backward, medians of runs on random numbers by the
// device's own clock (0 runs: each once, for profilers); whether the designs agree; attention, and a decoder layer of
// Llama-3.1-8B's shape, or as wide as the first width, forward and backward in rows of a quarter of the tokens: by the
// device's first kernels, by each second one that it has, and of few tokens launched one by one and as graphs.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "base/random.h"
#include "base/statistics.h"
#include "benchmarks/lora_designs.h"
#include "exec/device_array.h"
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

/// As the device holds them.
Buffer random_activations(BufferPool& pool, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  RandomStream random(seed);
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
  for (float& number : numbers) number = static_cast<float>(random.next_normal());
  DeviceArray<float> there(std::move(numbers));
  there.move_to(pool.device());
  Buffer buffer = pool.take(rows * columns);
  pool.device().kernels().copy(kernels::ConstMatrix(there.data(), rows, columns), buffer.matrix(rows, columns));
  pool.device().wait();
  return buffer;
}

/// Sequences of a quarter of the tokens, as that layer has them.
void measure_attention(kernels::Device& device, std::int64_t tokens, std::int64_t head_dim) {
  const kernels::AttentionShape shape{32, 8, head_dim};
  const std::int64_t q_width = shape.heads * head_dim, kv_width = shape.kv_heads * head_dim;
  std::vector<kernels::SequenceRows> sequences;
  for (std::int64_t row = 0; row < 4; ++row) sequences.push_back({row * (tokens / 4), tokens / 4});
  const std::int64_t rows = tokens / 4 * 4;
  BufferPool pool(device);
  const std::int64_t width = q_width + 2 * kv_width;
  const Buffer qkv = random_activations(pool, rows, width, 1), dout = random_activations(pool, rows, q_width, 2);
  const Buffer out = pool.take(rows * q_width), log_sum = pool.take_f32(rows * shape.heads),
               d_qkv = pool.take(rows * width);
  const auto part = [&](const Buffer& all, int which) {
    const std::int64_t begins[] = {0, q_width, q_width + kv_width, width};
    return all.matrix(rows, width).column_range(begins[which], begins[which + 1]);
  };
  const kernels::Kernels& kernels = device.kernels();
  const auto forward = [&] {
    kernels.attention_forward(shape, sequences, part(qkv, 0), part(qkv, 1), part(qkv, 2), out.matrix(rows, q_width),
                              log_sum.matrix(rows, shape.heads));
  };
  const auto backward = [&] {
    kernels.attention_backward(shape, sequences, part(qkv, 0), part(qkv, 1), part(qkv, 2), out.matrix(rows, q_width),
                               log_sum.matrix(rows, shape.heads), dout.matrix(rows, q_width), part(d_qkv, 0),
                               part(d_qkv, 1), part(d_qkv, 2));
  };
  for (const bool second : {false, true}) {
    if (second && !device.has_second_kernel(costmodel::Operator::attention)) continue;
    device.choose_kernels(second ? costmodel::all_of(costmodel::Operator::attention)
                                 : std::vector<costmodel::KernelChoice>{});
    fmt::print("attention of 32 heads of {} (8 of keys), {} tokens in 4 rows, {}: forward {:.4f} ms", head_dim, tokens,
               second ? "cuDNN" : "braid's own", seconds_of(device, forward) * 1e3);
    if (!second) fmt::print(", backward {:.4f} ms", seconds_of(device, backward) * 1e3);
    fmt::print("\n");
  }
  device.choose_kernels({});
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
  return kernels::make_cuda_device(0, name == "cuda-f32" ? Arithmetic::f32 : Arithmetic::bf16);
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
  // For the joined design; the others ask for no second kernel.
  if (device->has_second_kernel(costmodel::Operator::linear))
    device->choose_kernels(costmodel::all_of(costmodel::Operator::linear));
  bool agree = true;
  for (const std::int64_t tenants : {1, 4, 16}) {
    for (const float dropout : {0.0F, 0.1F}) {
      agree = designs_agree(*device, 128, 96, tenants, dropout) && agree;
      for (const std::int64_t width : widths) measure_lora(*device, width, tokens, tenants, dropout);
    }
  }
  // And of many tiles, once.
  agree = designs_agree(*device, widths.front(), tokens, 4, 0.1F) && agree;
  device->choose_kernels({});
  for (const std::int64_t head_dim : {64, 128})
    if (widths.front() >= 32 * head_dim) measure_attention(*device, tokens, head_dim);
  fmt::print("{}: ", name);
  measure_layer(*device, widths.front(), tokens);
  std::vector<costmodel::KernelChoice> all;
  for (const auto& [op, told] : {std::pair(costmodel::Operator::linear, "joined"),
                                 std::pair(costmodel::Operator::attention, "cuDNN's attention beside that")}) {
    if (!device->has_second_kernel(op)) continue;
    const std::vector<costmodel::KernelChoice> added = costmodel::all_of(op);
    all.insert(all.end(), added.begin(), added.end());
    device->choose_kernels(all);
    fmt::print("{}, {}: ", name, told);
    measure_layer(*device, widths.front(), tokens);
  }
  if (!device->has_second_kernel(costmodel::Operator::launch)) return agree ? 0 : 1;
  for (std::int64_t few = 128; few <= tokens; few *= 4) {
    for (const bool graphs : {false, true}) {
      device->choose_kernels(graphs ? costmodel::all_of(costmodel::Operator::launch)
                                    : std::vector<costmodel::KernelChoice>{});
      fmt::print("{}, launched {}: ", name, graphs ? "as graphs" : "one by one");
      measure_layer(*device, widths.front(), few);
    }
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
