#include "kernels/cuda/attention_graph.h"

namespace braid::kernels::cuda {
namespace {

using Kind = GraphTensor::Kind;

/// Puts a graph together whose scores are [batches, heads, longest, longest].
class Builder {
 public:
  Builder(std::int64_t batches, std::int64_t heads, std::int64_t longest)
      : scores_{batches, heads, longest, longest}, rows_{batches, heads, longest, 1} {}

  int scores(GraphType type = GraphType::f32) { return passing(scores_, type); }
  int rows() { return passing(rows_, GraphType::f32); }
  int held(GraphType type, const GraphSizes& sizes, const GraphSizes& strides, int offsets = -1) {
    return graph.add({Kind::held, type, sizes, strides, offsets});
  }
  /// One a batch.
  int per_batch(GraphType type, std::int64_t count) { return held(type, {count, 1, 1, 1}, {1, 1, 1, 1}); }
  int number() { return graph.add({Kind::number, GraphType::f32, {1, 1, 1, 1}, {1, 1, 1, 1}, -1}); }
  /// The operator's result, `to`.
  int run(GraphWork work, int to, int a, int b = -1, int c = -1) {
    graph.ops.push_back({.work = work, .to = to, .a = a, .b = b, .c = c});
    return to;
  }

  OperatorGraph graph;

 private:
  int passing(const GraphSizes& sizes, GraphType type) {
    return graph.add(
        {Kind::passing, type, sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}, -1});
  }
  GraphSizes scores_, rows_;
};

}  // namespace

AttentionGraph attention_graph(const AttentionLayout& layout, std::int64_t sequences, std::int64_t longest) {
  const std::int64_t size = layout.head_dim;
  Builder builder(sequences, layout.heads, longest);
  const auto offsets = [&] { return builder.per_batch(GraphType::int64, sequences + 1); };
  AttentionGraph made{};
  made.lengths = builder.per_batch(GraphType::int32, sequences);
  made.key_lengths = builder.per_batch(GraphType::int32, sequences);
  made.q_offsets = offsets(), made.k_offsets = offsets(), made.v_offsets = offsets();
  made.out_offsets = offsets(), made.log_sum_offsets = offsets();
  made.scale = builder.number(), made.lowest = builder.number();
  const auto rows_of_heads = [&](std::int64_t heads, std::int64_t stride, int begins) {
    return builder.held(GraphType::bf16, {sequences, heads, longest, size}, {longest * stride, size, stride, 1},
                        begins);
  };
  made.q = rows_of_heads(layout.heads, layout.q_stride, made.q_offsets);
  made.k = builder.held(GraphType::bf16, {sequences, layout.kv_heads, size, longest},
                        {longest * layout.k_stride, size, 1, layout.k_stride}, made.k_offsets);
  made.v = rows_of_heads(layout.kv_heads, layout.v_stride, made.v_offsets);
  made.out = rows_of_heads(layout.heads, layout.out_stride, made.out_offsets);
  made.log_sum = builder.held(GraphType::f32, {sequences, layout.heads, longest, 1},
                              {longest * layout.log_sum_stride, 1, layout.log_sum_stride, 1}, made.log_sum_offsets);

  const auto matmul = [&](int to, int a, int b, int columns, int depth) {
    builder.graph.ops.push_back({.work = GraphWork::matmul,
                                 .to = to,
                                 .a = a,
                                 .b = b,
                                 .rows = made.lengths,
                                 .columns = columns,
                                 .depth = depth});
    return to;
  };
  int scores = matmul(builder.scores(), made.q, made.k, made.key_lengths, -1);
  scores = builder.run(GraphWork::multiply, builder.scores(), scores, made.scale);
  const auto keep = [&](int seen) {
    scores = builder.run(GraphWork::select, builder.scores(), scores, made.lowest, seen);
  };
  const auto places = [&](GraphWork which) { return builder.run(which, builder.scores(GraphType::int32), scores); };
  const auto truth = [&](GraphWork work, int a, int b) {
    return builder.run(work, builder.scores(GraphType::boolean), a, b);
  };
  {
    const int row = places(GraphWork::row_index), column = places(GraphWork::column_index);
    const int of_rows = truth(GraphWork::less, row, made.lengths),
              of_columns = truth(GraphWork::less, column, made.key_lengths);
    keep(truth(GraphWork::both, of_rows, of_columns));
  }
  {
    const int row = places(GraphWork::row_index), column = places(GraphWork::column_index);
    keep(truth(GraphWork::at_least, row, column));
  }
  const int most = builder.run(GraphWork::greatest, builder.rows(), scores);
  const int less = builder.run(GraphWork::subtract, builder.scores(), scores, most);
  const int weights = builder.run(GraphWork::exp, builder.scores(), less);
  const int sums = builder.run(GraphWork::sum, builder.rows(), weights);
  const int logs = builder.run(GraphWork::log, builder.rows(), sums);
  builder.run(GraphWork::add, made.log_sum, most, logs);
  const int shares = builder.run(GraphWork::divide, builder.scores(GraphType::bf16), weights, sums);
  matmul(made.out, shares, made.v, -1, made.key_lengths);
  made.graph = std::move(builder.graph);
  return made;
}

}  // namespace braid::kernels::cuda
