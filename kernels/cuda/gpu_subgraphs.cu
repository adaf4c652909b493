#include <cstring>

#include "kernels/cuda/gpu_state.h"
#include "kernels/cuda/gpu_subgraphs.h"

namespace braid::kernels::cuda {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { cudaGraphDestroy(graph); }
};

}  // namespace

Subgraphs::~Subgraphs() {
  drop();
  cudaFree(tables_);
}

void Subgraphs::prepare() {
  if (!tables_) check(cudaMalloc(&tables_, kTables));
}

/// Relaxed: what this thread does beside the stream, as taking memory, is no part of the graph.
void Subgraphs::begin(const SubgraphCall& call) {
  end();
  if (!costmodel::takes_second_kernel(gpu_.choices, costmodel::Operator::launch, call.pass, {}, call.tokens)) return;
  if (known_kinds_.insert(call.kind).second) return;
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
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph> captured(graph);
  const std::int64_t bytes = std::ssize(staged_);
  const bool turns = gpu_.ring.turns(bytes);
  if (status == cudaSuccess && bytes > 0) {
    void* pinned = gpu_.ring.take(bytes, gpu_.stream);
    std::memcpy(pinned, staged_.data(), staged_.size());
    // The stream may still read the tables of the graph before: the copy waits its turn.
    check(cudaMemcpyAsync(tables_, pinned, staged_.size(), cudaMemcpyHostToDevice, gpu_.stream));
  }
  staged_.clear();
  check(status);
  launch(graph);
  // What was captured may read what the ring held before it turned.
  if (bytes > 0 && turns) gpu_.ring.mark_left(gpu_.stream);
}

/// What launched before goes on with what it was launched with. Libraries may launch other kernels for other sizes, and
/// so a graph is known by the number of its nodes, too.
void Subgraphs::launch(cudaGraph_t graph) {
  std::size_t nodes = 0;
  check(cudaGraphGetNodes(graph, nullptr, &nodes));
  if (nodes == 0) return;
  const std::size_t calls = calls_.add(static_cast<std::int64_t>(nodes)).value();
  Executable* known = graphs_.find(calls);
  cudaGraphExecUpdateResultInfo result{};
  if (known && cudaGraphExecUpdate(known->get(), graph, &result) != cudaSuccess) {
    cudaGetLastError();
    known = nullptr;
  }
  if (!known) {
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, graph, 0));
    known = &graphs_.put(calls, Executable(made));
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
