#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/bf16.h"
#include "kernels/cuda/graph_library.h"
#include "simt_on_cpu.h"

/// In place of cuDNN: graphs operator by operator, in double, each result rounded to its tensor's type. What a library
/// does not compute is NaN: rows, columns and depth beyond a batch's own.
namespace braid::kernels::cuda {
namespace {

using Kind = GraphTensor::Kind;

class GraphOnCpu final : public CompiledGraph {
 public:
  explicit GraphOnCpu(const OperatorGraph& graph) : graph_(graph) {}

  /// What the host's numbers are is read at once.
  void run(std::span<const GraphMemory> memory) const override {
    std::vector<GraphMemory> kept(memory.begin(), memory.end());
    std::vector<std::shared_ptr<float>> numbers;
    for (GraphMemory& one : kept) {
      if (tensor(one.tensor).kind != Kind::number) continue;
      numbers.push_back(std::make_shared<float>(*static_cast<const float*>(one.memory)));
      one.memory = numbers.back().get();
    }
    on_cpu::call([graph = *this, kept = std::move(kept), numbers = std::move(numbers)] { graph.run_now(kept); });
  }

 private:
  void run_now(std::span<const GraphMemory> memory) const {
    std::vector<Value> values(graph_.tensors.size());
    for (const GraphMemory& one : memory) values.at(static_cast<std::size_t>(one.tensor)).memory = one.memory;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const GraphTensor& tensor = graph_.tensors[i];
      BRAID_CHECK((values[i].memory != nullptr) == (tensor.kind != Kind::passing), "the memory of tensor {}", i);
      if (tensor.kind == Kind::passing)
        values[i].numbers.resize(
            static_cast<std::size_t>(tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3]));
    }
    for (const GraphOp& op : graph_.ops) run(op, values);
  }

  /// A tensor as it is held, or its numbers one after another.
  struct Value {
    void* memory = nullptr;
    std::vector<double> numbers;
  };
  using Values = std::vector<Value>;
  using Place = GraphSizes;

  const GraphTensor& tensor(int number) const { return graph_.tensors.at(static_cast<std::size_t>(number)); }

  std::int64_t offset(int number, const Values& values, const Place& place) const {
    const GraphTensor& of = tensor(number);
    std::int64_t offset = 0;
    for (std::size_t axis = 1; axis < 4; ++axis) offset += place[axis] * of.strides[axis];
    const bool passes = of.kind == Kind::passing;
    const std::int64_t batch =
        of.offsets < 0 || passes
            ? place[0] * of.strides[0]
            : static_cast<const std::int64_t*>(values[static_cast<std::size_t>(of.offsets)].memory)[place[0]];
    return batch + offset;
  }

  /// The number there; along sides of one number everywhere the same.
  double at(int number, const Values& values, Place place) const {
    const GraphTensor& of = tensor(number);
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (of.sizes[axis] == 1) place[axis] = 0;
    const std::int64_t offset = this->offset(number, values, place);
    const Value& value = values[static_cast<std::size_t>(number)];
    if (of.kind == Kind::passing) return value.numbers.at(static_cast<std::size_t>(offset));
    switch (of.type) {
      case GraphType::bf16:
        return static_cast<float>(static_cast<const Bf16*>(value.memory)[offset]);
      case GraphType::f32:
        return static_cast<const float*>(value.memory)[offset];
      case GraphType::int32:
        return static_cast<const std::int32_t*>(value.memory)[offset];
      case GraphType::int64:
      case GraphType::boolean:
        break;
    }
    throw InternalError("a type that no operator reads");
  }

  void set(int number, Values& values, const Place& place, double result) const {
    const GraphTensor& of = tensor(number);
    const std::int64_t offset = this->offset(number, values, place);
    Value& value = values[static_cast<std::size_t>(number)];
    const auto rounded = static_cast<float>(result);
    if (of.kind == Kind::passing) {
      value.numbers.at(static_cast<std::size_t>(offset)) =
          of.type == GraphType::bf16 ? static_cast<float>(Bf16(rounded)) : result;
    } else if (of.type == GraphType::bf16) {
      static_cast<Bf16*>(value.memory)[offset] = Bf16(rounded);
    } else {
      BRAID_CHECK(of.type == GraphType::f32, "a result of type {}", static_cast<int>(of.type));
      static_cast<float*>(value.memory)[offset] = rounded;
    }
  }

  template <typename Body>
  static void for_each(const GraphSizes& sizes, const Body& body) {
    Place place{};
    for (place[0] = 0; place[0] < sizes[0]; ++place[0])
      for (place[1] = 0; place[1] < sizes[1]; ++place[1])
        for (place[2] = 0; place[2] < sizes[2]; ++place[2])
          for (place[3] = 0; place[3] < sizes[3]; ++place[3]) body(place);
  }

  void run(const GraphOp& op, Values& values) const {
    const GraphSizes& sizes = tensor(op.to).sizes;
    if (op.work == GraphWork::matmul) return matmul(op, values);
    const bool held = tensor(op.to).kind == Kind::held;
    for_each(sizes, [&](const Place& place) {
      const double result = number(op, values, place);
      // Rows beyond a sequence's own are nobody's.
      if (!held || !std::isnan(result)) set(op.to, values, place, result);
    });
  }

  double number(const GraphOp& op, const Values& values, const Place& place) const {
    const auto a = [&] { return at(op.a, values, place); };
    const auto b = [&] { return at(op.b, values, place); };
    switch (op.work) {
      case GraphWork::multiply:
        return a() * b();
      case GraphWork::add:
        return a() + b();
      case GraphWork::subtract:
        return a() - b();
      case GraphWork::divide:
        return a() / b();
      case GraphWork::exp:
        return std::exp(a());
      case GraphWork::log:
        return std::log(a());
      case GraphWork::row_index:
        return static_cast<double>(place[2]);
      case GraphWork::column_index:
        return static_cast<double>(place[3]);
      case GraphWork::less:
        return a() < b() ? 1 : 0;
      case GraphWork::at_least:
        return a() >= b() ? 1 : 0;
      case GraphWork::both:
        return a() != 0 && b() != 0 ? 1 : 0;
      case GraphWork::select:
        return at(op.c, values, place) != 0 ? a() : b();
      case GraphWork::greatest:
      case GraphWork::sum: {
        Place of = place;
        double result = op.work == GraphWork::sum ? 0 : -std::numeric_limits<double>::infinity();
        for (of[3] = 0; of[3] < tensor(op.a).sizes[3]; ++of[3]) {
          const double next = at(op.a, values, of);
          result = op.work == GraphWork::sum ? result + next : std::max(result, next);
        }
        return result;
      }
      case GraphWork::matmul:
        break;
    }
    throw InternalError("work that this does not know");
  }

  void matmul(const GraphOp& op, Values& values) const {
    const GraphTensor &a = tensor(op.a), &b = tensor(op.b), &to = tensor(op.to);
    const std::int64_t share = a.sizes[1] / b.sizes[1];
    for_each(to.sizes, [&](const Place& place) {
      const auto own = [&](int lengths, std::int64_t all) {
        return lengths < 0 ? all : static_cast<std::int64_t>(at(lengths, values, {place[0], 0, 0, 0}));
      };
      const bool within = place[2] < own(op.rows, to.sizes[2]) && place[3] < own(op.columns, to.sizes[3]);
      if (!within && to.kind == Kind::held) return;
      double sum = within ? 0 : std::numeric_limits<double>::quiet_NaN();
      const std::int64_t depth = within ? own(op.depth, a.sizes[3]) : 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += at(op.a, values, {place[0], place[1], place[2], k}) *
               at(op.b, values, {place[0], place[1] / share, k, place[3]});
      set(op.to, values, place, sum);
    });
  }

  const OperatorGraph graph_;
};

class CompilerOnCpu final : public GraphCompiler {
 public:
  std::unique_ptr<CompiledGraph> compile(const OperatorGraph& graph) override {
    return std::make_unique<GraphOnCpu>(graph);
  }
};

}  // namespace

bool has_graph_library() {
  return true;
}
std::string graph_library_version() {
  return "an interpreter of graphs";
}
std::unique_ptr<GraphCompiler> make_graph_compiler() {
  return std::make_unique<CompilerOnCpu>();
}

}  // namespace braid::kernels::cuda
