#pragma once

#include <string>
#include <vector>

namespace braid::kernels {

/// The libraries that the CPU kernels stand on, "oneDNN 2.6.3" and so on.
std::vector<std::string> library_versions();

}  // namespace braid::kernels
