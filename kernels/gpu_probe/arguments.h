#pragma once

#include <string>
#include <vector>

namespace braid::gpu_probe {

struct Arguments {
  std::string out;
  double seconds = 110;  ///< to measure in
  bool overwrite = false;
  bool list = false;
  bool help = false;
};

/// Of the words after the program's name. Throws UsageError.
Arguments parse_arguments(const std::vector<std::string>& words);

std::string usage();

}  // namespace braid::gpu_probe
