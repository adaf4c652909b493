#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cuda/library_attention.h"
#include "kernels/cuda/side.h"
#include "kernels/cuda/simt.h"

namespace braid::kernels::cuda {
namespace {

/// Rows that libraries' kernels have at once. Graphs of single rows are for generation, and have other kernels.
constexpr std::int64_t kFewestRows = 64;
/// Kernels for larger heads are of other engines, with other rules.
constexpr std::int64_t kMostDim = 128;

/// So that few graphs serve sequences of all lengths: what is longer than a sequence are blocks that end at once.
std::int64_t rounded_up(std::int64_t longest) {
  return std::max(kFewestRows, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest))));
}

bool lies_together(const SequenceRows& sequence) {
  return std::ranges::all_of(sequence.earlier, [](const EarlierKeys& earlier) { return earlier.k.rows == 0; });
}

/// The tables of a call: lengths, and each matrix's offsets, each on 16 bytes.
class Tables {
 public:
  explicit Tables(const std::vector<SequenceRows>& sequences) : sequences_(sequences) {}
  /// Where it begins, in bytes.
  std::size_t add_lengths() {
    return add<std::int32_t>(sequences_.size(), [&](std::size_t s) {
      return static_cast<std::int32_t>(s < sequences_.size() ? sequences_[s].count : 0);
    });
  }
  std::size_t add_offsets(std::int64_t stride) {
    return add<std::int64_t>(sequences_.size() + 1, [&](std::size_t s) {
      const SequenceRows& sequence = sequences_[std::min(s, sequences_.size() - 1)];
      return (sequence.first + (s < sequences_.size() ? 0 : sequence.count)) * stride;
    });
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename Number, typename At>
  std::size_t add(std::size_t count, const At& at) {
    const std::size_t first = bytes_.size();
    bytes_.resize(first + (count * sizeof(Number) + 15) / 16 * 16);
    auto* numbers = reinterpret_cast<Number*>(bytes_.data() + first);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = at(i);
    return first;
  }
  const std::vector<SequenceRows>& sequences_;
  std::vector<std::byte> bytes_;
};

}  // namespace

const LibraryAttention::Compiled& LibraryAttention::compiled(const AttentionLayout& layout, std::int64_t sequences,
                                                             std::int64_t longest) {
  Family& family = families_[layout];
  if (!family.compiler) family.compiler = make_graph_compiler();
  const std::pair sizes(sequences, longest);
  if (const Compiled* known = family.graphs.find(sizes)) return *known;
  Compiled made{attention_graph(layout, sequences, longest), nullptr};
  made.kernel = family.compiler->compile(made.graph.graph);
  if (!made.kernel)
    throw Failure(fmt::format(
        "{} has no kernel for attention of {} heads ({} of keys) of {} numbers; profile with --kernels plain",
        graph_library_version(), layout.heads, layout.kv_heads, layout.head_dim));
  return family.graphs.put(sizes, std::move(made));
}

bool LibraryAttention::works() {
  if (works_) return *works_;
  try {
    constexpr std::int64_t kDim = 64;
    compiled({1, 1, kDim, kDim, kDim, kDim, kDim, 1}, 1, kFewestRows);
    works_ = true;
  } catch (const Failure&) {
    works_ = false;
  }
  return *works_;
}

bool LibraryAttention::forward(const AttentionShape& shape, std::span<const SequenceRows> sequences, ConstMatrix q,
                               ConstMatrix k, ConstMatrix v, Matrix out, Matrix log_sum) {
  const auto aligned = [](ConstMatrix matrix) {
    return matrix.type == costmodel::DataType::bf16 && lies_on_16_bytes(matrix);
  };
  if (shape.head_dim % 8 != 0 || shape.head_dim > kMostDim) return false;
  if (!aligned(q) || !aligned(k) || !aligned(v) || !aligned(out)) return false;
  if (reinterpret_cast<std::uintptr_t>(log_sum.data) % 16 != 0) return false;
  std::vector<SequenceRows> full;
  for (const SequenceRows& sequence : sequences) {
    if (!lies_together(sequence)) return false;
    if (sequence.count > 0) full.push_back(sequence);
  }
  if (full.empty()) return true;
  // An offset more than there are sequences ends the last.
  std::ranges::sort(full, {}, &SequenceRows::first);
  const std::int64_t longest = std::ranges::max_element(full, {}, &SequenceRows::count)->count;
  const AttentionLayout layout{shape.heads, shape.kv_heads, shape.head_dim, q.stride,
                               k.stride,    v.stride,       out.stride,     log_sum.stride};
  const Compiled& found = compiled(layout, std::ssize(full), rounded_up(longest));

  Tables tables(full);
  const std::size_t lengths = tables.add_lengths();
  const std::size_t q_offsets = tables.add_offsets(q.stride), k_offsets = tables.add_offsets(k.stride),
                    v_offsets = tables.add_offsets(v.stride), out_offsets = tables.add_offsets(out.stride),
                    log_sum_offsets = tables.add_offsets(log_sum.stride);
  const Numbers<std::byte> on_device(tables.bytes());
  auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
  float lowest = -std::numeric_limits<float>::infinity();
  const AttentionGraph& graph = found.graph;
  const auto matrix = [](int tensor, ConstMatrix of) { return GraphMemory{tensor, const_cast<float*>(of.data)}; };
  const auto table = [&](int tensor, std::size_t first) { return GraphMemory{tensor, on_device.data() + first}; };
  const GraphMemory memory[] = {matrix(graph.q, q),
                                matrix(graph.k, k),
                                matrix(graph.v, v),
                                matrix(graph.out, out),
                                matrix(graph.log_sum, log_sum),
                                table(graph.lengths, lengths),
                                table(graph.key_lengths, lengths),
                                table(graph.q_offsets, q_offsets),
                                table(graph.k_offsets, k_offsets),
                                table(graph.v_offsets, v_offsets),
                                table(graph.out_offsets, out_offsets),
                                table(graph.log_sum_offsets, log_sum_offsets),
                                {graph.scale, &scale},
                                {graph.lowest, &lowest}};
  found.kernel->run(memory);
  return true;
}

}  // namespace braid::kernels::cuda
