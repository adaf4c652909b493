#pragma once

#include <array>
#include <cstdint>
#include <vector>

/// Operators that a library compiles into one kernel, such as cuDNN's attention: what it is told, in no library's
/// words.
namespace braid::kernels::cuda {

enum class GraphType { bf16, f32, int32, int64, boolean };

/// [batches, heads, rows, columns], and how far apart in memory their neighbours lie, in numbers.
using GraphSizes = std::array<std::int64_t, 4>;

struct GraphTensor {
  enum class Kind {
    held,     ///< in the device's memory, whose address is told when the graph runs
    passing,  ///< from one operator to the next
    number    ///< one number of the host
  };
  Kind kind = Kind::passing;
  GraphType type = GraphType::f32;
  GraphSizes sizes{}, strides{};
  /// The tensor [batches + 1, 1, 1, 1] of int64 that says how many numbers from its first each batch begins, in place
  /// of the batches' stride; -1: none.
  int offsets = -1;
};

enum class GraphWork {
  matmul,    ///< a · b, heads of b each shared by as many of a
  multiply,  ///< and so on: number by number, of which one side may be a row's or one alone
  add,
  subtract,
  divide,
  exp,
  log,
  row_index,  ///< of each number its row's place; `a` tells the sizes alone
  column_index,
  less,      ///< a < b
  at_least,  ///< a >= b
  both,      ///< a and b
  select,    ///< a where c, else b
  greatest,  ///< of each row
  sum        ///< of each row
};

struct GraphOp {
  GraphWork work = GraphWork::matmul;
  int to = -1, a = -1, b = -1, c = -1;
  /// Of a matmul: tensors [batches, 1, 1, 1] of int32 with the rows, columns and depth that each batch has; -1: all.
  int rows = -1, columns = -1, depth = -1;
};

struct OperatorGraph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphOp> ops;

  int add(const GraphTensor& tensor) {
    tensors.push_back(tensor);
    return static_cast<int>(tensors.size()) - 1;
  }
};

}  // namespace braid::kernels::cuda
