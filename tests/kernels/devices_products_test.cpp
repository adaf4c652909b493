#include <deque>

#include "devices.h"

namespace braid::kernels {
namespace {

using costmodel::DataType;
using testing::Devices;
using testing::Numbers;

TEST_P(Devices, ProductsOfAllTypesAndTranspositions) {
  for (const bool a_across : {false, true}) {
    for (const bool b_across : {false, true}) {
      const std::int64_t rows = between(1, 70), columns = between(1, 70), depth = between(0, 70);
      Numbers a = activations(a_across ? depth : rows, a_across ? rows : depth);
      Numbers b = parameters(b_across ? columns : depth, b_across ? depth : columns), c = activations(rows, columns);
      Numbers gradient = f32(rows, columns);
      const auto across = [](bool yes) { return yes ? Transpose::yes : Transpose::no; };
      for (const float beta : {0.0F, 1.0F}) {
        reference().matmul(0.5F, a.host(), across(a_across), b.host(), across(b_across), beta, c.host());
        own().matmul(0.5F, a.there(), across(a_across), b.there(), across(b_across), beta, c.there());
        agree(c, "matmul", 3);
        reference().matmul(0.5F, a.host(), across(a_across), b.host(), across(b_across), beta, gradient.host());
        own().matmul(0.5F, a.there(), across(a_across), b.there(), across(b_across), beta, gradient.there());
        EXPECT_LT(gradient.difference(), 5e-6) << "matmul to f32";
      }
    }
  }
}

TEST_P(Devices, LongSums) {
  for (const bool across : {false, true}) {
    const std::int64_t few = between(1, 20), many = between(60, 80), depth = between(2050, 2200);
    for (const auto& [rows, columns] : {std::pair(few, many), {many, few}}) {
      Numbers a = activations(across ? depth : rows, across ? rows : depth);
      Numbers b = activations(across ? depth : columns, across ? columns : depth), c = f32(rows, columns);
      const Transpose first = across ? Transpose::yes : Transpose::no;
      const Transpose second = across ? Transpose::no : Transpose::yes;
      reference().matmul(2, a.host(), first, b.host(), second, 1, c.host());
      own().matmul(2, a.there(), first, b.there(), second, 1, c.there());
      EXPECT_LT(c.difference(), 2e-5);
    }
  }
}

/// One task and sixteen, of ranks from 4 to 128, of which some have no rows.
TEST_P(Devices, AdaptersOfManyTasks) {
  for (const int tasks : {1, 16}) {
    const std::int64_t in = between(1, 60), out = between(1, 60);
    std::vector<Numbers> xs, as, bs, lows, ys;
    std::vector<MatmulCall> down, up, own_down, own_up;
    for (int task = 0; task < tasks; ++task) {
      const std::int64_t rows = task % 5 == 4 ? 0 : between(1, 40), rank = task == 3 ? 128 : between(4, 32);
      xs.push_back(activations(rows, in)), as.push_back(parameters(rank, in, 0.3F)),
          bs.push_back(parameters(out, rank, 0.3F));
      lows.push_back(activations(rows, rank)), ys.push_back(activations(rows, out));
    }
    for (std::size_t t = 0; t < xs.size(); ++t) {
      down.push_back({1, xs[t].host(), Transpose::no, as[t].host(), Transpose::yes, 0, lows[t].host()});
      up.push_back({2, lows[t].host(), Transpose::no, bs[t].host(), Transpose::yes, 1, ys[t].host()});
      own_down.push_back({1, xs[t].there(), Transpose::no, as[t].there(), Transpose::yes, 0, lows[t].there()});
      own_up.push_back({2, lows[t].there(), Transpose::no, bs[t].there(), Transpose::yes, 1, ys[t].there()});
    }
    reference().matmul_group(down), own().matmul_group(own_down);
    for (Numbers& low : lows) agree(low, "down", 3);
    reference().matmul_group(up), own().matmul_group(own_up);
    for (Numbers& y : ys) agree(y, "up", 5);
  }
}

/// As an adapter's products have it: of their inputs going forward and for A's gradient, of what goes back to inputs.
TEST_P(Devices, ProductsThatDropNumbers) {
  if (!device_->drops_in_products()) GTEST_SKIP() << "its products drop nothing";
  for (const Dropped dropped : {Dropped::a, Dropped::b, Dropped::sum}) {
    for (const bool a_across : {false, true}) {
      for (const bool b_across : {false, true}) {
        const std::int64_t rows = between(1, 70), columns = between(1, 70), depth = between(1, 70);
        Numbers a = activations(a_across ? depth : rows, a_across ? rows : depth);
        Numbers b = activations(b_across ? columns : depth, b_across ? depth : columns), c = activations(rows, columns);
        const Transpose of_a = a_across ? Transpose::yes : Transpose::no;
        const Transpose of_b = b_across ? Transpose::yes : Transpose::no;
        const auto beta = static_cast<float>(between(0, 1));
        MatmulCall call{0.5F, a.host(), of_a, b.host(), of_b, beta, c.host()};
        MatmulCall own_call{0.5F, a.there(), of_a, b.there(), of_b, beta, c.there()};
        const std::int64_t count = dropped == Dropped::a ? call.a.rows : dropped == Dropped::b ? call.b.rows : rows;
        std::vector<std::int32_t> positions;
        std::vector<std::int64_t> samples;
        for (std::int64_t row = 0; row < count; ++row)
          positions.push_back(static_cast<std::int32_t>(between(0, 4000))), samples.push_back(between(0, 9) << 33);
        // Twice a number of bf16 is one.
        const float probability = dropped != Dropped::sum && type() == DataType::bf16 ? 0.5F : 0.3F;
        call.dropped = own_call.dropped = dropped;
        call.drop = own_call.drop = {positions, samples, random_.next_below(std::uint64_t{1} << 60), probability,
                                     between(0, 50)};
        reference().matmul_group({&call, 1});
        own().matmul_group({&own_call, 1});
        agree(c, "product", 3);
      }
    }
  }
}

TEST_P(Devices, FrozenLayersOfEveryType) {
  const std::int64_t in = between(1, 70), out = between(1, 70), rows = between(1, 40);
  const std::vector<float> bias = testing::normal_vector(random_, out);
  for (const WeightType type : {WeightType::f32, WeightType::bf16, WeightType::int8, WeightType::nf4}) {
    Numbers weight = activations(out, in), x = activations(rows, in), y = activations(rows, out),
            dx = activations(rows, in);
    const auto expected = reference().pack_linear(weight.host(), bias, true, type);
    const auto linear = own().pack_linear(weight.host(), bias, true, type);
    expected->forward(x.host(), y.host());
    linear->forward(x.there(), y.there());
    agree(y, "forward", 5);
    expected->backward(y.host(), dx.host());
    linear->backward(y.there(), dx.there());
    agree(dx, "backward", 5);
  }
}

/// Sequences of any lengths, some of which go on where earlier chunks ended, whose keys may be of f32 adapters.
TEST_P(Devices, Attention) {
  const std::int64_t sizes[] = {8, 64, 80, 96, 128};
  const std::int64_t kv_heads = between(1, 2), heads = kv_heads * between(1, 3), size = sizes[between(0, 4)];
  const AttentionShape shape{heads, kv_heads, size};
  std::vector<std::int64_t> counts;
  std::int64_t rows = 0;
  for (std::int64_t s = between(1, 3); s > 0; --s) rows += counts.emplace_back(between(1, 45));
  rows += counts.emplace_back(between(60, 150));
  const std::int64_t q_width = heads * size, kv_width = kv_heads * size;
  Numbers q = activations(rows, q_width), k = activations(rows, kv_width), v = activations(rows, kv_width);
  Numbers out = activations(rows, q_width), log_sum = f32(rows, heads), dout = activations(rows, q_width);
  Numbers dq = activations(rows, q_width), dk = activations(rows, kv_width), dv = activations(rows, kv_width);
  const std::int64_t earlier = between(0, 40), virtual_tokens = between(1, 4);
  const auto of_earlier = [&](bool prefix) {
    const std::int64_t count = prefix ? virtual_tokens : earlier;
    std::vector<Numbers> parts;
    for (int i = 0; i < 4; ++i)
      parts.push_back(prefix && i < 2 ? parameters(count, kv_width) : activations(count, kv_width));
    return parts;
  };
  std::vector<Numbers> prefix = of_earlier(true), chunk = of_earlier(false);
  const auto keys_there = [](std::vector<Numbers>& all) {
    return EarlierKeys{all[0].there(), all[1].there(), all[2].there(), all[3].there()};
  };
  const auto keys_here = [](std::vector<Numbers>& all) {
    return EarlierKeys{all[0].host(), all[1].host(), all[2].host(), all[3].host()};
  };
  const std::vector<EarlierKeys> there = {keys_there(prefix), keys_there(chunk)};
  const std::vector<EarlierKeys> here = {keys_here(prefix), keys_here(chunk)};
  std::vector<SequenceRows> sequences, own_sequences;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    const bool goes_on = first == 0;  // gradients of earlier keys are one sequence's
    sequences.push_back({first, count, goes_on ? std::span(here) : std::span<const EarlierKeys>()});
    own_sequences.push_back({first, count, goes_on ? std::span(there) : std::span<const EarlierKeys>()});
    first += count;
  }
  const std::int64_t went_on = between(0, counts.back());  // rows of the last that a later chunk has keys of
  Numbers later_dk = activations(went_on, kv_width), later_dv = activations(went_on, kv_width);
  sequences.back().later_dk = later_dk.host(), sequences.back().later_dv = later_dv.host();
  own_sequences.back().later_dk = later_dk.there(), own_sequences.back().later_dv = later_dv.there();
  reference().attention_forward(shape, sequences, q.host(), k.host(), v.host(), out.host(), log_sum.host());
  own().attention_forward(shape, own_sequences, q.there(), k.there(), v.there(), out.there(), log_sum.there());
  agree(out, "out", 2);
  EXPECT_LT(log_sum.difference(), 5e-6) << "log_sum";
  reference().attention_backward(shape, sequences, q.host(), k.host(), v.host(), out.host(), log_sum.host(),
                                 dout.host(), dq.host(), dk.host(), dv.host());
  own().attention_backward(shape, own_sequences, q.there(), k.there(), v.there(), out.there(), log_sum.there(),
                           dout.there(), dq.there(), dk.there(), dv.there());
  agree(dq, "dq", 6), agree(dk, "dk", 6), agree(dv, "dv", 6);
  agree(prefix[2], "dk of a prefix", 6), agree(prefix[3], "dv of a prefix", 6);
  agree(chunk[2], "dk of an earlier chunk", 6), agree(chunk[3], "dv of an earlier chunk", 6);
}

TEST_P(Devices, SparseDifferences) {
  const std::int64_t in = between(1, 50), out = between(1, 50), rows = between(1, 12), count = between(1, 40);
  std::vector<std::int32_t> row_places = integers(count, out), columns = integers(count, in);
  std::sort(row_places.begin(), row_places.end());
  const auto there = [&](const std::vector<std::int32_t>& numbers) {
    std::shared_ptr<void> memory(device_->allocate(4 * count), [&](void* address) { device_->free(address); });
    device_->upload(std::as_bytes(std::span(numbers)), memory.get());
    return memory;
  };
  const std::shared_ptr<void> rows_there = there(row_places), columns_there = there(columns);
  const std::int64_t first_row = between(0, out - 1), last_row = between(first_row + 1, out);
  const std::int64_t first_column = between(0, in - 1), last_column = between(first_column + 1, in);
  SparsePlaces host{row_places, columns, first_row, last_row, first_column, last_column};
  SparsePlaces own_places{{static_cast<const std::int32_t*>(rows_there.get()), count},
                          {static_cast<const std::int32_t*>(columns_there.get()), count},
                          first_row,
                          last_row,
                          first_column,
                          last_column};
  Numbers values = f32(1, count), d_values = f32(1, count), x = activations(rows, last_column - first_column);
  Numbers y = activations(rows, last_row - first_row), dx = activations(rows, last_column - first_column);
  reference().sparse_forward(host, values.host_vector(), x.host(), y.host());
  own().sparse_forward(own_places, values.vector(), x.there(), y.there());
  agree(y, "sparse_forward", 2);
  reference().sparse_backward(host, values.host_vector(), x.host(), y.host(), d_values.host_vector(), dx.host());
  own().sparse_backward(own_places, values.vector(), x.there(), y.there(), d_values.vector(), dx.there());
  EXPECT_LT(d_values.difference(), type() == DataType::bf16 ? 2e-2 : 1e-5) << "d_values";
  agree(dx, "sparse_backward", 12);
}

}  // namespace
}  // namespace braid::kernels
