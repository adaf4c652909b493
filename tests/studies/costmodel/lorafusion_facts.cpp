#include "studies/costmodel/lorafusion_facts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "costmodel/gpu/gpu_kernels.h"
#include "costmodel/gpu/roofline.h"
#include "costmodel/shapes/adapter.h"
#include "studies/costmodel/gemm_traffic.h"

namespace braid::costmodel::studies {
namespace {

constexpr DataType kType = DataType::bf16;

/// Time of some kernels, and what counters see them move where each starts with a cold cache, as under Nsight Compute.
struct Work {
  double product_seconds = 0;
  double element_wise_seconds = 0;
  double bytes = 0;

  double seconds() const { return product_seconds + element_wise_seconds; }
  Work& operator+=(const Work& other) {
    product_seconds += other.product_seconds;
    element_wise_seconds += other.element_wise_seconds;
    bytes += other.bytes;
    return *this;
  }
};

using Kernels = std::vector<GpuKernel>;

/// One square linear layer with an adapter of rank 16 and dropout on an H100.
class LinearWithLora {
 public:
  LinearWithLora(std::int64_t side, std::int64_t tokens) : side_(side), tokens_(tokens) {}

  Work frozen(Pass pass) const { return work(kernels({Operator::linear, pass, {side_, side_}, tokens_})); }
  /// PEFT's kernels beside the frozen layer's.
  Work adapter(Pass pass) const { return work(kernels(adapter_call(Operator::lora_dropout, pass))); }
  /// The same of a Backward where the gradient of X is the frozen product's to add up, were it so: the last kernel of
  /// PEFT's is that sum.
  Work adapter_before_product() const {
    Kernels all = kernels(adapter_call(Operator::lora_dropout, Pass::backward));
    BRAID_CHECK(all.back().bytes == stream(3 * bytes_of(kType)).bytes, "PEFT's kernels end in a sum");
    all.pop_back();
    return work(all);
  }
  Work separate(Pass pass) const {
    Work sum = frozen(pass);
    return sum += adapter(pass);
  }

  /// LoRAFusion §5.1: the frozen product with the adapter's second one inside, and what stands beside it.
  Work fused(Pass pass) const {
    Work sum = deep(pass);
    return sum += work(kernels(adapter_call(Operator::fused_lora_dropout, pass)));
  }
  /// The same as the released code runs it unless it is changed: X is masked by a kernel of its own before the product
  /// by A.
  Work released(Pass pass) const {
    if (pass != Pass::forward) return fused(pass);
    Work sum = deep(pass);
    GpuKernel down;
    down.kind = GpuKernel::Kind::product;
    down.product = {tokens_, side_, kRank};
    return sum += work({stream(2 * bytes_of(kType) + kMaskBytes), down});
  }

 private:
  static constexpr std::int64_t kRank = 16;
  /// Of the released kernels on an H100.
  static constexpr GemmTile kTile{128, 256};
  static constexpr std::int64_t kGroup = 8;

  OperatorCall adapter_call(Operator op, Pass pass) const { return {op, pass, {side_, side_, kRank, 1}, tokens_}; }

  /// A kernel that moves so many bytes of each number of X.
  GpuKernel stream(std::int64_t bytes) const {
    GpuKernel kernel;
    kernel.kind = GpuKernel::Kind::stream;
    kernel.stream = StreamKind::add;
    kernel.bytes = static_cast<double>(tokens_ * side_ * bytes);
    return kernel;
  }
  Work deep(Pass pass) const {
    const bool forward = pass == Pass::forward;
    const Kernels product =
        kernels({Operator::linear, pass, {side_ + (forward ? kRank : 0), side_ + (forward ? 0 : kRank)}, tokens_});
    Work sum = work(product);
    sum.bytes = grouped_memory_traffic(roofline_.device(), kType, product.front().product, kTile, kGroup);
    // Going back it reads the mask.
    if (!forward) sum.bytes += static_cast<double>(tokens_ * side_ * kMaskBytes);
    return sum;
  }

  static Kernels kernels(const OperatorCall& call) {
    const GpuKernels all = gpu_kernels(call, kType);
    return {all.begin(), all.end()};
  }
  Work work(const Kernels& kernels) const {
    Work sum;
    for (const GpuKernel& kernel : kernels) {
      const double seconds =
          kernel.count * roofline_.seconds(kernel, true);  // no attention: the direction is no matter
      if (kernel.kind == GpuKernel::Kind::product) {
        sum.product_seconds += seconds;
        sum.bytes += kernel.count * memory_traffic(roofline_.device(), kType, kernel.product);
      } else {
        sum.element_wise_seconds += seconds;
        sum.bytes += kernel.count * kernel.bytes;
      }
    }
    return sum;
  }

  std::int64_t side_ = 0;
  std::int64_t tokens_ = 0;
  Roofline roofline_{device_of("h100"), kType};
};

Work step(const LinearWithLora& layer, Work (LinearWithLora::*kernels)(Pass) const) {
  Work sum = (layer.*kernels)(Pass::forward);
  return sum += (layer.*kernels)(Pass::backward);
}

/// What an adapter's kernels take beside the frozen product: of the time of both, in all and by kind.
struct Shares {
  double lost = 0;
  double products = 0;
  double element_wise = 0;
};

void add_shares(std::vector<PaperFact>& facts, const char* which, const Shares& paper, const Work& frozen,
                const Work& adapter) {
  const double whole = (frozen.seconds() + adapter.seconds()) / 100;
  const std::string section = "LoRAFusion 3.1";
  facts.push_back({section, fmt::format("lost to LoRA, {}", which), "%", paper.lost, adapter.seconds() / whole});
  facts.push_back(
      {section, fmt::format("LoRA's products, {}", which), "%", paper.products, adapter.product_seconds / whole});
  facts.push_back(
      {section, fmt::format("element-wise, {}", which), "%", paper.element_wise, adapter.element_wise_seconds / whole});
}

void add_overhead(std::vector<PaperFact>& facts) {
  const LinearWithLora layer(4096, 8192);
  constexpr Shares kForward{40, 10.76, 30.46}, kBackward{36, 20.37, 17.49};
  const Work forward = layer.frozen(Pass::forward), backward = layer.frozen(Pass::backward);
  add_shares(facts, "forward", kForward, forward, layer.adapter(Pass::forward));
  add_shares(facts, "backward", kBackward, backward, layer.adapter(Pass::backward));
  add_shares(facts, "backward, if summed in product", kBackward, backward, layer.adapter_before_product());
  facts.push_back({"LoRAFusion 3.1", "memory traffic with LoRA over without", "x", 2.64,
                   step(layer, &LinearWithLora::separate).bytes / step(layer, &LinearWithLora::frozen).bytes});
}

/// The mean and the best over the layers and tokens of the released benchmark, of a Forward alone and with its
/// Backward. The paper does not say which its mean is of.
void add_speedups(std::vector<PaperFact>& facts) {
  const std::string figure = "LoRAFusion fig. 17";
  for (const auto& [name, kernels] :
       {std::pair("released", &LinearWithLora::released), std::pair("designed", &LinearWithLora::fused)}) {
    double forward_sum = 0, step_sum = 0, best = 0;
    int count = 0;
    for (const std::int64_t side : {4096, 5120, 8192}) {
      for (std::int64_t tokens = 2048; tokens <= 8192; tokens += 256) {
        const LinearWithLora layer(side, tokens);
        const double forward = layer.separate(Pass::forward).seconds() / (layer.*kernels)(Pass::forward).seconds();
        const double both = step(layer, &LinearWithLora::separate).seconds() / step(layer, kernels).seconds();
        best = std::max({best, forward, both});
        forward_sum += forward;
        step_sum += both;
        ++count;
      }
    }
    const auto add = [&](const char* what, double paper, double ours) {
      facts.push_back({figure, fmt::format("fused as {}: {}", name, what), "x", paper, ours});
    };
    add("mean speedup forward", 1.27, forward_sum / count);
    add("mean speedup with backward", 1.27, step_sum / count);
    add("best speedup", 1.39, best);
  }
}

/// 8,192 tokens through three layers. The bars' heights are constants of the plotting script that was released with the
/// kernels; it divides Nsight Compute's megabytes by 1,024.
void add_traffic(std::vector<PaperFact>& facts) {
  const std::string figure = "LoRAFusion fig. 19";
  constexpr double kGigabyte = 1e9, kBar = 1.024;
  struct Counted {
    std::int64_t side = 0;
    double separate = 0, fused = 0;
  };
  for (const auto& [side, separate, fused] :
       {Counted{4096, 2.008, 1.258}, Counted{5120, 2.771, 1.836}, Counted{8192, 5.289, 4.044}}) {
    const LinearWithLora layer(side, 8192);
    const double ours = step(layer, &LinearWithLora::separate).bytes / kGigabyte;
    const double ours_fused = step(layer, &LinearWithLora::released).bytes / kGigabyte;
    facts.push_back({figure, fmt::format("PEFT's kernels, {} x {}", side, side), "GB", kBar * separate, ours});
    facts.push_back({figure, fmt::format("fused as released, {} x {}", side, side), "GB", kBar * fused, ours_fused});
    if (side == 4096) facts.push_back({figure, "fused as released over PEFT's", "x", 0.63, ours_fused / ours});
  }
}

}  // namespace

std::vector<PaperFact> lorafusion_facts() {
  std::vector<PaperFact> facts;
  add_overhead(facts);
  add_speedups(facts);
  add_traffic(facts);
  return facts;
}

}  // namespace braid::costmodel::studies
