#include <cstring>

#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/gpu_subgraphs.h"

namespace braid::kernels::cuda {

Subgraphs::~Subgraphs() {
  drop();
  cudaFree(tables_);
}

/// Relaxed: what this thread does beside the stream, as taking memory, is no part of the graph.
void Subgraphs::begin(const SubgraphCall& call) {
  end();
  if (!costmodel::takes_second_kernel(gpu_.choices, costmodel::Operator::launch, call.pass, {}, call.tokens)) return;
  if (known_kinds_.insert(call.kind).second) return;
  if (!tables_) check(cudaMalloc(&tables_, kTables));
  check(cudaStreamBeginCapture(gpu_.stream, cudaStreamCaptureModeRelaxed));
  captures_ = true;
  ++begun_;
  calls_ = MixedHash();
}

void Subgraphs::end() {
  if (!captures_) return;
  captures_ = false;
  cudaGraph_t graph = nullptr;
  const cudaError_t status = cudaStreamEndCapture(gpu_.stream, &graph);
  const auto tables = std::exchange(staged_, {});
  check(status);
  try {
    // The stream may still read the tables of the graph before: copies wait their turn.
    if (!tables.empty()) {
      void* pinned = gpu_.ring.take(std::ssize(tables), gpu_.stream);
      std::memcpy(pinned, tables.data(), tables.size());
      check(cudaMemcpyAsync(tables_, pinned, tables.size(), cudaMemcpyHostToDevice, gpu_.stream));
    }
    launch(graph);
  } catch (...) {
    cudaGraphDestroy(graph);
    throw;
  }
  cudaGraphDestroy(graph);
}

/// What launched before goes on with what it was launched with.
void Subgraphs::launch(cudaGraph_t graph) {
  Executable* known = graphs_.find(calls_.value());
  if (known) {
    cudaGraphExecUpdateResultInfo result{};
    const cudaError_t status = cudaGraphExecUpdate(known->get(), graph, &result);
    if (status == cudaErrorGraphExecUpdateFailure) {
      cudaGetLastError();
      known = nullptr;
    } else {
      check(status);
    }
  }
  if (!known) {
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph, 0));
    known = &graphs_.put(calls_.value(), Executable(made));
  }
  check(cudaGraphLaunch(known->get(), gpu_.stream));
}

void Subgraphs::drop() {
  if (!captures_) return;
  captures_ = false;
  staged_.clear();
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(gpu_.stream, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
  cudaGetLastError();
}

void* Subgraphs::table(const void* host, std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  const auto first = (std::ssize(staged_) + kAlignment - 1) / kAlignment * kAlignment;
  if (!captures_ || first + bytes > kTables) return nullptr;
  staged_.resize(static_cast<std::size_t>(first + bytes));
  std::memcpy(staged_.data() + first, host, static_cast<std::size_t>(bytes));
  return static_cast<char*>(tables_) + first;
}

void Subgraphs::forget() {
  interrupt();
  graphs_.clear();
}

}  // namespace braid::kernels::cuda
