#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace braid::gpu_probe {

/// The cost model's name for a GPU that calls itself `name` to CUDA; empty for one it has no datasheet of.
std::string device_of_gpu(std::string_view name);

/// The names to CUDA that it knows.
std::vector<std::string> known_gpus();

}  // namespace braid::gpu_probe
