#include "kernels/gpu_probe/gpu_names.h"

#include <array>
#include <utility>

namespace braid::gpu_probe {
namespace {

using Name = std::pair<std::string_view, std::string_view>;

// Whole names: the PCIe and NVL cards of the same chips have other rates. V100s know no bf16.
constexpr std::array kNames = {Name{"NVIDIA GeForce RTX 3090", "rtx3090"},
                               Name{"NVIDIA A40", "a40"},
                               Name{"NVIDIA RTX A6000", "rtxa6000"},
                               Name{"NVIDIA L40S", "l40s"},
                               Name{"NVIDIA A100-SXM4-40GB", "a100-40"},
                               Name{"NVIDIA A100-SXM4-80GB", "a100-80"},
                               Name{"NVIDIA A800-SXM4-80GB", "a800-80"},
                               Name{"NVIDIA H100 80GB HBM3", "h100-sxm"},
                               Name{"NVIDIA H200", "h200-sxm"}};

}  // namespace

std::string device_of_gpu(std::string_view name) {
  for (const auto& [gpu, device] : kNames) {
    if (gpu == name) return std::string(device);
  }
  return "";
}

std::vector<std::string> known_gpus() {
  std::vector<std::string> names;
  for (const Name& name : kNames) names.emplace_back(name.first);
  return names;
}

}  // namespace braid::gpu_probe
