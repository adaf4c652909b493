#include "costmodel/gpu/device.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace braid::costmodel {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr Bytes kGigabytes = 1'000'000'000;
constexpr Bytes kMegabytes = 1'000'000;

// NVIDIA's datasheets: dense tensor-core rates of 16 bits, f32 without them; NVLink's figure there is the sum of both
// directions.
constexpr std::array kDevices = {
    Device{"v100-sxm2", Generation::volta, 125 * kTera, 15.7 * kTera, 32 * kGigabytes, 900 * kGiga, 80, 6 * kMegabytes,
           150 * kGiga, true, 300},
    Device{"rtx3090", Generation::ampere_ga10x, 71 * kTera, 35.6 * kTera, 24 * kGigabytes, 936 * kGiga, 82,
           6 * kMegabytes, 56.25 * kGiga, false, 350},
    Device{"a40", Generation::ampere_ga10x, 149.7 * kTera, 37.4 * kTera, 48 * kGigabytes, 696 * kGiga, 84,
           6 * kMegabytes, 56.25 * kGiga, false, 300},
    Device{"rtxa6000", Generation::ampere_ga10x, 154.8 * kTera, 38.7 * kTera, 48 * kGigabytes, 768 * kGiga, 84,
           6 * kMegabytes, 56.25 * kGiga, false, 300},
    Device{"l40s", Generation::ada, 362 * kTera, 91.6 * kTera, 48 * kGigabytes, 864 * kGiga, 142, 96 * kMegabytes, 0,
           false, 350},
    Device{"a100-40", Generation::ampere, 312 * kTera, 19.5 * kTera, 40 * kGigabytes, 1555 * kGiga, 108,
           40 * kMegabytes, 300 * kGiga, true, 400},
    Device{"a100-80", Generation::ampere, 312 * kTera, 19.5 * kTera, 80 * kGigabytes, 2039 * kGiga, 108,
           40 * kMegabytes, 300 * kGiga, true, 400},
    Device{"a800-80", Generation::ampere, 312 * kTera, 19.5 * kTera, 80 * kGigabytes, 2039 * kGiga, 108,
           40 * kMegabytes, 200 * kGiga, true, 400},
    Device{"h100-sxm", Generation::hopper, 989 * kTera, 67 * kTera, 80 * kGigabytes, 3350 * kGiga, 132, 50 * kMegabytes,
           450 * kGiga, true, 700},
    Device{"h200-sxm", Generation::hopper, 989 * kTera, 67 * kTera, 141 * kGigabytes, 4800 * kGiga, 132,
           50 * kMegabytes, 450 * kGiga, true, 700},
};

/// Shorter names for the one that is usually meant.
constexpr std::array kAliases = {std::pair<std::string_view, std::string_view>{"v100", "v100-sxm2"},
                                 std::pair<std::string_view, std::string_view>{"a6000", "rtxa6000"},
                                 std::pair<std::string_view, std::string_view>{"a100", "a100-80"},
                                 std::pair<std::string_view, std::string_view>{"a800", "a800-80"},
                                 std::pair<std::string_view, std::string_view>{"h100", "h100-sxm"},
                                 std::pair<std::string_view, std::string_view>{"h200", "h200-sxm"}};

}  // namespace

double Device::peak_flops(DataType type) const {
  // int8 weights are taken to be widened and multiplied in 16 bits.
  return type == DataType::f32 ? f32_flops : bf16_flops;
}

const Device* find_device(std::string_view name) {
  for (const auto& [alias, whole] : kAliases) {
    if (alias == name) name = whole;
  }
  for (const Device& device : kDevices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const Device& device_of(std::string_view name) {
  if (const Device* device = find_device(name)) return *device;
  throw error("unknown GPU '{}'; known: {}", name, fmt::join(device_names(), ", "));
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const Device& device : kDevices) names.emplace_back(device.name);
  return names;
}

/// Whole names: the PCIe and NVL cards of the same chips have other rates. V100s know no bf16.
const Device* find_device_of_machine(std::string_view machine) {
  using Name = std::pair<std::string_view, std::string_view>;
  constexpr std::array kNames = {Name{"NVIDIA GeForce RTX 3090", "rtx3090"},
                                 Name{"NVIDIA A40", "a40"},
                                 Name{"NVIDIA RTX A6000", "rtxa6000"},
                                 Name{"NVIDIA L40S", "l40s"},
                                 Name{"NVIDIA A100-SXM4-40GB", "a100-40"},
                                 Name{"NVIDIA A100-SXM4-80GB", "a100-80"},
                                 Name{"NVIDIA A800-SXM4-80GB", "a800-80"},
                                 Name{"NVIDIA H100 80GB HBM3", "h100-sxm"},
                                 Name{"NVIDIA H200", "h200-sxm"}};
  const auto* const found = std::ranges::find(kNames, machine, &Name::first);
  return found == kNames.end() ? nullptr : find_device(found->second);
}

}  // namespace braid::costmodel
