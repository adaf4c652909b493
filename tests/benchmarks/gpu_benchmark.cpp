// How fast a device computes what fine-tuning is made of, beside its frozen products alone:
//   gpu_benchmark [cuda|cuda-f32|cpu] [tokens] [width,width,...]
// A line a case: LoRA beside a frozen layer of that width, of 1, 4 and 16 tasks of rank 16 that share the tokens,
// forward and backward, medians of runs by the device's own clock; then a decoder layer of Llama-3.1-8B's shape, or as
// wide as the first width, forward and backward in rows of a quarter of the tokens.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "base/statistics.h"
#include "exec/example/random_weights.h"
#include "exec/objectives/token_losses.h"
#include "exec/stage_model.h"
#include "planner/program/load.h"

namespace braid::exec {
namespace {

using kernels::Matrix;
using kernels::Transpose;

constexpr std::int64_t kRank = 16;
constexpr int kRuns = 20;

/// The median of the device's seconds for `work`, after a run to warm up.
template <typename Work>
double seconds_of(kernels::Device& device, const Work& work) {
  std::vector<double> seconds;
  for (int run = 0; run <= kRuns; ++run) {
    const std::unique_ptr<kernels::Event> begun = device.record();
    work();
    const std::unique_ptr<kernels::Event> ended = device.record();
    device.wait();
    if (run > 0) seconds.push_back(std::chrono::duration<double>(*ended->ended() - *begun->ended()).count());
  }
  return median(std::move(seconds));
}

/// One task's rows of the tokens, and its adapter.
struct Tenant {
  std::int64_t first = 0, last = 0;
  Buffer a, b, d_a, d_b, low, d_low;
};

void measure_lora(kernels::Device& device, std::int64_t width, std::int64_t tokens) {
  const kernels::Kernels& kernels = device.kernels();
  BufferPool pool(device);
  const auto linear = random_linear(width, width, true, 1, kernels, kernels::WeightType::bf16);
  const Buffer x = pool.take(tokens * width), y = pool.take(tokens * width), dx = pool.take(tokens * width);
  const auto all = [&](const Buffer& buffer) { return buffer.matrix(tokens, width); };
  kernels.fill(0.01F, all(x));
  const double forward = seconds_of(device, [&] { linear->forward(all(x), all(y)); });
  const double backward = seconds_of(device, [&] { linear->backward(all(y), all(dx)); });
  const double flops = 2.0 * static_cast<double>(tokens) * static_cast<double>(width * width);
  fmt::print("{:>6} {:>7} {:>6} {:>11.4f} {:>12.4f} {:>9} {:>9} {:>8.1f}\n", width, tokens, "frozen", forward * 1e3,
             backward * 1e3, "", "", flops / forward * 1e-12);
  for (const std::int64_t count : {1, 4, 16}) {
    std::vector<Tenant> tenants(static_cast<std::size_t>(count));
    for (std::int64_t t = 0; t < count; ++t) {
      Tenant& tenant = tenants[static_cast<std::size_t>(t)];
      tenant.first = tokens * t / count, tenant.last = tokens * (t + 1) / count;
      for (Buffer* buffer : {&tenant.a, &tenant.b, &tenant.d_a, &tenant.d_b}) {
        *buffer = pool.take_f32(kRank * width);
        kernels.fill(0.01F, buffer->row());
      }
      for (Buffer* buffer : {&tenant.low, &tenant.d_low}) *buffer = pool.take((tenant.last - tenant.first) * kRank);
    }
    const auto rows = [&](const Tenant& tenant, const Buffer& of) {
      return all(of).row_range(tenant.first, tenant.last);
    };
    const auto low = [&](const Tenant& tenant, const Buffer& of) {
      return of.matrix(tenant.last - tenant.first, kRank);
    };
    const auto group = [&](const auto& call) {
      std::vector<kernels::MatmulCall> calls;
      for (const Tenant& tenant : tenants) call(tenant, calls);
      kernels.matmul_group(calls);
    };
    using Calls = std::vector<kernels::MatmulCall>;
    const double with_forward = seconds_of(device, [&] {
      linear->forward(all(x), all(y));
      group([&](const Tenant& t, Calls& calls) {
        calls.push_back({1, rows(t, x), Transpose::no, t.a.matrix(kRank, width), Transpose::yes, 0, low(t, t.low)});
      });
      group([&](const Tenant& t, Calls& calls) {
        calls.push_back({2, low(t, t.low), Transpose::no, t.b.matrix(width, kRank), Transpose::yes, 1, rows(t, y)});
      });
    });
    const double with_backward = seconds_of(device, [&] {
      linear->backward(all(y), all(dx));
      group([&](const Tenant& t, Calls& calls) {
        calls.push_back({2, rows(t, y), Transpose::yes, low(t, t.low), Transpose::no, 1, t.d_b.matrix(width, kRank)});
        calls.push_back({2, rows(t, y), Transpose::no, t.b.matrix(width, kRank), Transpose::no, 0, low(t, t.d_low)});
      });
      group([&](const Tenant& t, Calls& calls) {
        calls.push_back({1, low(t, t.d_low), Transpose::yes, rows(t, x), Transpose::no, 1, t.d_a.matrix(kRank, width)});
        calls.push_back({1, low(t, t.d_low), Transpose::no, t.a.matrix(kRank, width), Transpose::no, 1, rows(t, dx)});
      });
    });
    fmt::print("{:>6} {:>7} {:>6} {:>11.4f} {:>12.4f} {:>9.3f} {:>9.3f}\n", width, tokens, count, with_forward * 1e3,
               with_backward * 1e3, with_forward / forward, with_backward / backward);
  }
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

int run(int count, char** words) {
  const std::string name = count > 1 ? words[1] : "cuda";
  const std::int64_t tokens = count > 2 ? std::atoll(words[2]) : 8192;
  std::vector<std::int64_t> widths;
  std::stringstream list(count > 3 ? words[3] : "4096,5120,8192");
  for (std::string width; std::getline(list, width, ',');) widths.push_back(std::atoll(width.c_str()));
  const std::unique_ptr<kernels::Device> device =
      name == "cpu"
          ? kernels::make_cpu_device()
          : kernels::make_cuda_device(0, name == "cuda-f32" ? kernels::Arithmetic::f32 : kernels::Arithmetic::bf16);
  for (const std::string& version : device->library_versions()) fmt::print("{}\n", version);
  fmt::print("{:>6} {:>7} {:>6} {:>11} {:>12} {:>9} {:>9} {:>8}\n", "width", "tokens", "tasks", "forward ms",
             "backward ms", "forward/", "backward/", "TFLOP/s");
  for (const std::int64_t width : widths) measure_lora(*device, width, tokens);
  measure_layer(*device, widths.front(), tokens);
  return 0;
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
