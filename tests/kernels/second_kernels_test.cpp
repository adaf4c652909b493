#include <cmath>
#include <deque>

#include "devices.h"
#include "kernels/cuda/library_attention.h"

/// What a GPU's second kernels compute, once they are chosen, beside the reference.
namespace braid::kernels {
namespace {

using costmodel::Operator;
using testing::Numbers;
using testing::on_16_bytes;

constexpr Operator kOperators[] = {Operator::linear, Operator::attention};

/// Has all of its second kernels compute.
std::unique_ptr<Device> with_second_kernels(std::unique_ptr<Device> device) {
  std::vector<costmodel::KernelChoice> choices;
  for (const Operator op : kOperators) {
    const std::vector<costmodel::KernelChoice> all = costmodel::all_of(op);
    if (device->has_second_kernel(op)) choices.insert(choices.end(), all.begin(), all.end());
  }
  device->choose_kernels(choices);
  return device;
}

const testing::Tested kSecond[] = {
    {"cuda_on_cpu_second",
     [](std::uint64_t seed) { return with_second_kernels(make_cuda_on_cpu_device(Arithmetic::bf16, seed)); }},
    {"cuda_second", [](std::uint64_t) { return with_second_kernels(make_cuda_device(0)); }},
};

class SecondKernels : public testing::Devices {
 protected:
  /// Of an H100 or H200 without second kernels tests would pass that ran nothing.
  bool has(Operator op) const {
    const bool has = device_->has_second_kernel(op);
    const std::string machine = device_->machine();
    if (machine.find("H100") != std::string::npos || machine.find("H200") != std::string::npos) {
      EXPECT_TRUE(has) << name(op);
    }
    return has;
  }
};

/// Frozen products of several tiles to which those of adapters of many tasks are added, one after another where they
/// meet: of targets going forward, of dropped inputs going back.
TEST_P(SecondKernels, FrozenLayersJoinedWithAdapters) {
  if (!has(Operator::linear)) GTEST_SKIP() << "no H100 here";
  const std::int64_t step = on_16_bytes ? 8 : 1, rows = between(100, 300);
  const std::int64_t in = step * between(1, 600 / step), out = step * between(2, 200 / step);
  const std::int64_t first_part = between(1, out - 1), parts[] = {first_part, out - first_part};
  const std::vector<float> bias = testing::normal_vector(random_, out);
  const WeightType types[] = {WeightType::f32, WeightType::bf16, WeightType::int8, WeightType::nf4};
  Numbers weight = activations(out, in), x = activations(rows, in), y = activations(rows, out);
  Numbers dx = activations(rows, in);
  const WeightType held = types[between(0, 3)];
  const auto expected = reference().pack_linear(weight.host(), bias, true, held);
  const auto linear = own().pack_linear(weight.host(), bias, true, held);
  std::vector<std::int32_t> positions = integers(rows, 4000), samples_of_rows = integers(rows, 9);
  const std::vector<std::int64_t> samples(samples_of_rows.begin(), samples_of_rows.end());
  std::deque<Numbers> matrices;
  std::vector<MatmulCall> up, own_up, back, own_back;
  const std::uint64_t key = random_.next_below(std::uint64_t{1} << 60);
  std::int64_t first_row = 0;
  for (std::int64_t task = 0; first_row < rows; ++task) {
    const std::int64_t last_row = std::min(rows, first_row + (task == 2 ? 0 : between(1, 120)));
    const std::int64_t ranks[] = {between(4, 20), between(4, 70)};
    const std::int64_t rank = ranks[0] + ranks[1];
    Numbers& low = matrices.emplace_back(activations(last_row - first_row, rank));
    std::int64_t column = 0, rank_first = 0;
    for (int target = 0; target < 2; ++target) {
      // A target that this task lacks.
      if (task != 1 || target == 1) {
        Numbers& b = matrices.emplace_back(parameters(parts[target], ranks[target], 0.3F));
        Numbers& a = matrices.emplace_back(parameters(ranks[target], in, 0.3F));
        const std::int64_t rank_last = rank_first + ranks[target], last = column + parts[target];
        const auto of = [&](Matrix all) { return all.row_range(first_row, last_row); };
        const auto s = [&](Matrix all) { return all.column_range(rank_first, rank_last); };
        up.push_back(
            {2, s(low.host()), Transpose::no, b.host(), Transpose::yes, 1, of(y.host()).column_range(column, last)});
        own_up.push_back(
            {2, s(low.there()), Transpose::no, b.there(), Transpose::yes, 1, of(y.there()).column_range(column, last)});
        back.push_back({1, s(low.host()), Transpose::no, a.host(), Transpose::no, 1, of(dx.host())});
        own_back.push_back({1, s(low.there()), Transpose::no, a.there(), Transpose::no, 1, of(dx.there())});
        if (task % 2 == 0) {
          const auto first = static_cast<std::size_t>(first_row),
                     count = static_cast<std::size_t>(last_row - first_row);
          for (MatmulCall* call : {&back.back(), &own_back.back()}) {
            call->dropped = Dropped::sum;
            call->drop = {std::span(positions).subspan(first, count), std::span(samples).subspan(first, count),
                          key + static_cast<std::uint64_t>(target), 0.3F, target == 0 ? 0 : 7};
          }
        }
      }
      rank_first += ranks[target], column += parts[target];
    }
    first_row = last_row;
  }
  if (!linear->forward_joined(x.there(), y.there(), own_up)) {
    EXPECT_EQ(y.difference(), 0) << "which was not to be touched";
    ASSERT_FALSE(on_16_bytes);
    GTEST_SKIP() << "it makes them apart";
  }
  expected->forward(x.host(), y.host());
  for (const MatmulCall& call : up) reference().matmul_group({&call, 1});
  agree(y, "forward", 3);
  ASSERT_TRUE(linear->backward_joined(y.there(), dx.there(), own_back));
  // Of what the device has made.
  expected->backward(y.host(), dx.host());
  for (const MatmulCall& call : back) reference().matmul_group({&call, 1});
  agree(dx, "backward", 5);
}

/// A task whose adapter is no number any more leaves others alone, which share tiles with it.
TEST_P(SecondKernels, AJoinedAdapterIsItsOwnRowsAlone) {
  if (!has(Operator::linear)) GTEST_SKIP() << "no H100 here";
  const std::int64_t in = 24, out = 40, rows = 60, rank = 8, first = 33;
  Numbers weight = activations(out, in), x = activations(rows, in), y = activations(rows, out);
  Numbers low = activations(rows - first, rank), no_number = parameters(out, rank, NAN),
          sound = activations(first, out);
  const auto expected = reference().pack_linear(weight.host(), {}, true, WeightType::bf16);
  const auto linear = own().pack_linear(weight.host(), {}, true, WeightType::bf16);
  const MatmulCall added{
      1, low.there(), Transpose::no, no_number.there(), Transpose::yes, 1, y.there().row_range(first, rows)};
  if (!linear->forward_joined(x.there(), y.there(), {&added, 1})) {
    ASSERT_FALSE(on_16_bytes);
    GTEST_SKIP() << "it makes them apart";
  }
  expected->forward(x.host(), y.host());
  reference().copy(y.host().row_range(0, first), sound.host());
  own().copy(y.there().row_range(0, first), sound.there());
  agree(sound, "forward", 3);
}

/// Sequences of any lengths, all of whose keys are their own, in matrices that are parts of one as in a layer: what
/// lies on 16 bytes must be the library's.
TEST_P(SecondKernels, AttentionOfWholeSequences) {
  if (!has(Operator::attention)) GTEST_SKIP() << "no cuDNN here";
  const std::int64_t sizes[] = {8, 64, 80, 96, 128};
  const std::int64_t kv_heads = between(1, 2), heads = kv_heads * between(1, 3), size = sizes[between(0, 4)];
  const AttentionShape shape{heads, kv_heads, size};
  std::vector<SequenceRows> sequences;
  std::int64_t rows = 0;
  const std::int64_t longer = device_->host_memory() ? 1 : 8;  // many tiles, where they take no time
  for (std::int64_t s = between(1, 5); s > 0; --s) {
    sequences.push_back({rows, s == 2 ? 1 : between(0, 90 * longer)});
    rows += sequences.back().count;
  }
  sequences.push_back({rows, between(100, 140 * longer)});
  rows += sequences.back().count;
  std::swap(sequences.front(), sequences.back());
  const std::int64_t q_width = heads * size, kv_width = kv_heads * size;
  Numbers qkv = activations(rows, q_width + 2 * kv_width), d_qkv = activations(rows, q_width + 2 * kv_width);
  Numbers out = activations(rows, q_width), log_sum = f32(rows, heads), dout = activations(rows, q_width);
  const auto part = [&](Matrix all, int which) {
    const std::int64_t begins[] = {0, q_width, q_width + kv_width, q_width + 2 * kv_width};
    return all.column_range(begins[which], begins[which + 1]);
  };
  const auto forward = [&](const Kernels& kernels, Matrix of, Matrix to, Matrix sums) {
    kernels.attention_forward(shape, sequences, part(of, 0), part(of, 1), part(of, 2), to, sums);
  };
  forward(reference(), qkv.host(), out.host(), log_sum.host());
  forward(own(), qkv.there(), out.there(), log_sum.there());
  agree(out, "out", 2);
  EXPECT_LT(log_sum.difference(), 5e-6) << "log_sum";
  // Of what the second kernel has kept.
  const auto backward = [&](const Kernels& kernels, Matrix of, Matrix to, Matrix sums, Matrix d_to, Matrix d_of) {
    kernels.attention_backward(shape, sequences, part(of, 0), part(of, 1), part(of, 2), to, sums, d_to, part(d_of, 0),
                               part(d_of, 1), part(d_of, 2));
  };
  backward(reference(), qkv.host(), out.host(), log_sum.host(), dout.host(), d_qkv.host());
  backward(own(), qkv.there(), out.there(), log_sum.there(), dout.there(), d_qkv.there());
  agree(d_qkv, "gradients", 6);
}

/// A sequence that has lost its numbers leaves its neighbours theirs, whose tiles it shares.
TEST_P(SecondKernels, AttentionKeepsSequencesApart) {
  if (!has(Operator::attention)) GTEST_SKIP() << "no cuDNN here";
  constexpr std::int64_t kHeads = 2, kDim = 64, kRows = 150, kFirst = 50, kLast = 101;
  const std::vector<SequenceRows> sequences = {{0, kFirst}, {kFirst, kLast - kFirst}, {kLast, kRows - kLast}};
  Numbers q = activations(kRows, kHeads * kDim), k = activations(kRows, kHeads * kDim),
          v = activations(kRows, kHeads * kDim);
  Numbers out = activations(kRows, kHeads * kDim), log_sum = f32(kRows, kHeads);
  const AttentionShape shape{kHeads, kHeads, kDim};
  reference().attention_forward(shape, sequences, q.host(), k.host(), v.host(), out.host(), log_sum.host());
  for (Numbers* lost : {&q, &k, &v}) own().fill(NAN, lost->there().row_range(kFirst, kLast));
  own().attention_forward(shape, sequences, q.there(), k.there(), v.there(), out.there(), log_sum.there());
  // What the lost one has is its own business.
  for (Numbers* result : {&out, &log_sum}) {
    own().fill(0, result->there().row_range(kFirst, kLast));
    reference().fill(0, result->host().row_range(kFirst, kLast));
  }
  agree(out, "out", 2);
  EXPECT_LT(log_sum.difference(), 5e-6) << "log_sum";
}

INSTANTIATE_TEST_SUITE_P(All, SecondKernels, ::testing::Combine(::testing::ValuesIn(kSecond), ::testing::Range(1, 7)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).name) + "_" +
                                  std::to_string(std::get<1>(tested.param));
                         });

/// Which calls are the library's.
TEST(LibraryAttention, TakesWholeSequencesOnSixteenBytesAlone) {
  const std::unique_ptr<Device> device = make_cuda_on_cpu_device(Arithmetic::bf16);
  RandomStream random(3);
  const auto takes = [&](std::int64_t head_dim, std::int64_t stride, std::int64_t earlier, std::int64_t first_count) {
    constexpr std::int64_t kRows = 12, kHeads = 2;
    std::vector<std::uint16_t> numbers(static_cast<std::size_t>(3 * kRows * stride) + 8);
    auto* memory =
        reinterpret_cast<float*>(numbers.data() + 8 - reinterpret_cast<std::uintptr_t>(numbers.data()) % 16 / 2);
    const Matrix q(memory, kRows, kHeads * head_dim, stride, costmodel::DataType::bf16);
    std::vector<std::uint16_t> results(numbers.size());
    auto* to = reinterpret_cast<float*>(results.data() + 8 - reinterpret_cast<std::uintptr_t>(results.data()) % 16 / 2);
    const Matrix out(to, kRows, kHeads * head_dim, stride, costmodel::DataType::bf16);
    std::vector<float> sums(kRows * kHeads);
    const EarlierKeys keys{q.row_range(0, earlier), q.row_range(0, earlier), {}, {}};
    const SequenceRows sequences[] = {{0, first_count, {&keys, 1}}, {first_count, kRows - first_count}};
    return cuda::library_attention().forward({kHeads, kHeads, head_dim}, sequences, q, q, q, out,
                                             {sums.data(), kRows, kHeads});
  };
  EXPECT_TRUE(takes(64, 128, 0, 5));
  EXPECT_TRUE(takes(64, 136, 0, 0)) << "a sequence without rows";
  EXPECT_FALSE(takes(64, 128, 3, 5)) << "keys of an earlier microbatch";
  EXPECT_FALSE(takes(64, 129, 0, 5)) << "rows lie anywhere";
  EXPECT_FALSE(takes(12, 24, 0, 5)) << "such heads";
  EXPECT_FALSE(takes(136, 272, 0, 5)) << "heads that large";
}

}  // namespace
}  // namespace braid::kernels
