#pragma once

#include <stdexcept>

namespace braid::gpu_probe {

/// Bad arguments: what is wrong and what would be right, in one line. The program ends with status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What went wrong while running, and what to do, in one line. The program ends with status 1.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace braid::gpu_probe
