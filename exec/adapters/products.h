#pragma once

#include <vector>

#include "exec/buffer.h"

namespace braid::exec {

/// Small products of several tasks' adapters, which one call makes.
class Products {
 public:
  explicit Products(const kernels::Kernels& kernels) : kernels_(kernels) {}
  /// One that adds to what others of the table make comes in a later `turn` than they.
  void add(const kernels::MatmulCall& call, std::size_t turn = 0);
  /// Makes them, a call a turn, and forgets them.
  void run();
  bool any() const { return !turns_.empty(); }
  /// All of them, turn by turn.
  std::vector<kernels::MatmulCall> in_order() const;
  /// What they read stays as long as they do.
  void keep(Buffer buffer) { kept_.push_back(std::move(buffer)); }

 private:
  const kernels::Kernels& kernels_;
  std::vector<std::vector<kernels::MatmulCall>> turns_;
  std::vector<Buffer> kept_;
};

}  // namespace braid::exec
