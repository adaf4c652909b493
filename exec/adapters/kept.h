#pragma once

#include <vector>

#include "exec/buffer.h"
#include "exec/profiling/probe.h"

namespace braid::exec {

/// What a task's adapter beside a frozen product keeps of its rows from the forward to the backward pass.
struct AdapterKept {
  Buffer low_rank;  ///< [rows, numbers between an adapter's two products]
  Buffer output;    ///< [rows, outputs]: of the product, or of the hidden state, before the adapter changed it
  std::vector<Probe::Stretch> stretches;  ///< of the stream that the parts of the pass have taken
};

}  // namespace braid::exec
