#pragma once

#include <string>
#include <vector>

namespace braid::cli {

/// Of what this build computes and talks with: "oneDNN 2.6.3".
std::vector<std::string> library_versions();

}  // namespace braid::cli
