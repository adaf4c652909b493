#include "devices.h"

namespace braid::kernels {
namespace {

using costmodel::DataType;
using testing::Devices;
using testing::Numbers;

TEST_P(Devices, NumberByNumber) {
  const std::int64_t rows = between(0, 20), columns = between(1, 600);
  Numbers x = activations(rows, columns), y = activations(rows, columns), z = f32(rows, columns),
          factors = f32(1, columns);
  const auto both = [&](const auto& call, const char* what) {
    call(reference(), x.host(), y.host(), factors.host_vector());
    call(own(), x.there(), y.there(), factors.vector());
    agree(y, what, 2);
  };
  both([](const Kernels& k, Matrix a, Matrix b, Vector) { k.add(a, b); }, "add");
  both([](const Kernels& k, Matrix a, Matrix b, Vector) { k.scale(0.5F, a, true, b); }, "scale");
  both([](const Kernels& k, Matrix a, Matrix b, Vector c) { k.scale_columns(c, a, true, b); }, "scale_columns");
  both([](const Kernels& k, Matrix, Matrix b, Vector c) { k.add_row(-1.5F, c, b); }, "add_row");
  both([](const Kernels& k, Matrix a, Matrix b, Vector) { k.copy(a, b); }, "copy");
  reference().sum_columns(2, x.host(), y.host(), factors.host_vector());
  own().sum_columns(2, x.there(), y.there(), factors.vector());
  EXPECT_LT(factors.difference(), 1e-5) << "sum_columns";
  reference().sum_columns(1, x.host(), {}, factors.host_vector());
  own().sum_columns(1, x.there(), {}, factors.vector());
  EXPECT_LT(factors.difference(), 1e-5) << "sum_columns of one";
  reference().copy(x.host(), z.host());
  own().copy(x.there(), z.there());
  EXPECT_EQ(z.difference(), 0) << "copy to f32";
  both([](const Kernels& k, Matrix, Matrix b, Vector) { k.fill(0.25F, b); }, "fill");
}

TEST_P(Devices, Rows) {
  const std::int64_t count = between(1, 40), columns = between(1, 300), rows = between(1, count);
  Numbers table = f32(count, columns), x = activations(rows, columns), y = activations(count, columns);
  std::vector<std::int32_t> places(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int32_t>(i);
  places.resize(static_cast<std::size_t>(rows));
  reference().embedding_forward(table.host(), places, true, x.host());
  own().embedding_forward(table.there(), places, true, x.there());
  agree(x, "embedding_forward");
  reference().scatter_rows(x.host(), places, y.host());
  own().scatter_rows(x.there(), places, y.there());
  agree(y, "scatter_rows");
}

TEST_P(Devices, Norms) {
  const std::int64_t rows = between(1, 12), columns = between(1, 700);
  Numbers x = activations(rows, columns), y = activations(rows, columns), dx = activations(rows, columns);
  Numbers weight = f32(1, columns), bias = f32(1, columns), scale = f32(1, rows), statistics = f32(rows, 2);
  reference().rms_norm_forward(x.host(), weight.host_vector(), 1e-5F, y.host(), scale.host_vector());
  own().rms_norm_forward(x.there(), weight.vector(), 1e-5F, y.there(), scale.vector());
  agree(y, "rms_norm_forward");
  EXPECT_LT(scale.difference(), 2e-6);
  own().rms_norm_again(x.there(), weight.vector(), scale.vector(), y.there());
  agree(y, "rms_norm_again");
  reference().rms_norm_backward(y.host(), x.host(), weight.host_vector(), scale.host_vector(), dx.host());
  own().rms_norm_backward(y.there(), x.there(), weight.vector(), scale.vector(), dx.there());
  agree(dx, "rms_norm_backward", 4);
  reference().layer_norm_forward(x.host(), weight.host_vector(), bias.host_vector(), 1e-5F, y.host(),
                                 statistics.host());
  // Vectors of the device lie as rows of matrices do.
  own().layer_norm_forward(x.there(), weight.vector(), bias.vector(), 1e-5F, y.there(), statistics.there());
  agree(y, "layer_norm_forward");
  own().layer_norm_again(x.there(), weight.vector(), bias.vector(), statistics.there(), y.there());
  agree(y, "layer_norm_again");
  reference().layer_norm_backward(y.host(), x.host(), weight.host_vector(), statistics.host(), dx.host());
  own().layer_norm_backward(y.there(), x.there(), weight.vector(), statistics.there(), dx.there());
  agree(dx, "layer_norm_backward", 8);
}

TEST_P(Devices, HeadsAreNormedAndTurned) {
  const std::int64_t rows = between(1, 10), heads = between(1, 9), half = between(1, 40);
  Numbers x = activations(rows, heads * 2 * half), before = activations(rows, heads * 2 * half);
  Numbers weight = f32(1, 2 * half), scale = f32(rows, heads), frequencies = f32(1, half);
  const std::vector<std::int32_t> positions = integers(rows, 500);
  reference().head_norm_forward(x.host(), weight.host_vector(), 1e-6F, before.host(), scale.host());
  own().head_norm_forward(x.there(), weight.vector(), 1e-6F, before.there(), scale.there());
  agree(x, "head_norm_forward");
  reference().rope_forward(x.host(), 2 * half, positions, frequencies.host_vector(), 1.1F);
  own().rope_forward(x.there(), 2 * half, positions, frequencies.vector(), 1.1F);
  agree(x, "rope_forward", 2);
  reference().rope_backward(x.host(), 2 * half, positions, frequencies.host_vector(), 1.1F);
  own().rope_backward(x.there(), 2 * half, positions, frequencies.vector(), 1.1F);
  agree(x, "rope_backward", 3);
  reference().head_norm_backward(x.host(), before.host(), weight.host_vector(), scale.host());
  own().head_norm_backward(x.there(), before.there(), weight.vector(), scale.there());
  agree(x, "head_norm_backward", 12);
}

TEST_P(Devices, Activations) {
  for (const Activation kind :
       {Activation::swiglu, Activation::geglu, Activation::gelu, Activation::silu, Activation::relu}) {
    const std::int64_t rows = between(1, 9), columns = between(1, 400), in = has_gate(kind) ? 2 * columns : columns;
    Numbers x = activations(rows, in, 3), y = activations(rows, columns), dx = activations(rows, in);
    reference().activation_forward(kind, x.host(), y.host());
    own().activation_forward(kind, x.there(), y.there());
    agree(y, "activation_forward");
    reference().activation_backward(kind, y.host(), x.host(), dx.host());
    own().activation_backward(kind, y.there(), x.there(), dx.there());
    agree(dx, "activation_backward", 3);
  }
}

TEST_P(Devices, DropoutDropsTheSame) {
  const std::int64_t rows = between(1, 20), columns = between(1, 300);
  Numbers x = activations(rows, columns), y = activations(rows, columns);
  const std::vector<std::int32_t> positions = integers(rows, 4000);
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < rows; ++row) samples.push_back(between(0, std::int64_t{1} << 40));
  const DropoutRows drop{positions, samples, random_.next_below(std::uint64_t{1} << 60), 0.3F, between(0, 50)};
  for (const bool accumulate : {false, true}) {
    reference().dropout(drop, x.host(), accumulate, y.host());
    own().dropout(drop, x.there(), accumulate, y.there());
    agree(y, "dropout", 2);
  }
}

TEST_P(Devices, CrossEntropyWholeAndInShares) {
  const std::int64_t rows = between(1, 9), columns = between(2, 700), shards = between(1, 3),
                     place = between(0, shards - 1);
  Numbers logits = activations(rows, columns, 4), losses = f32(1, rows), shares = f32(rows, 3 * shards);
  const std::vector<std::int32_t> labels = integers(rows, columns);
  std::vector<float> scales;
  for (std::int64_t row = 0; row < rows; ++row) scales.push_back(static_cast<float>(random_.next_normal()));
  Numbers part = activations(rows, columns, 4);
  reference().cross_entropy(logits.host(), labels, scales, losses.host_vector());
  own().cross_entropy(logits.there(), labels, scales, losses.vector());
  agree(logits, "cross_entropy");
  EXPECT_LT(losses.difference(), 2e-6) << "losses";
  std::vector<std::int32_t> elsewhere = labels;
  if (place > 0) elsewhere[0] = -3;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t s = 0; s < shards; ++s)
      shares.host().row(row)[3 * s + 1] = 1 + std::abs(shares.host().row(row)[3 * s + 1]);
  shares = [&] {
    Numbers again = f32(rows, 3 * shards);
    reference().copy(shares.host(), again.host());
    for (std::int64_t row = 0; row < rows; ++row)
      device_->upload(std::as_bytes(std::span(again.host().row(row), static_cast<std::size_t>(3 * shards))),
                      again.there().data + row * again.there().stride);
    return again;
  }();
  const auto own_share = [&](Matrix all) { return all.column_range(3 * place, 3 * place + 3); };
  reference().cross_entropy_share(part.host(), elsewhere, own_share(shares.host()));
  own().cross_entropy_share(part.there(), elsewhere, own_share(shares.there()));
  agree(part, "cross_entropy_share");
  EXPECT_LT(shares.difference(), type() == DataType::bf16 ? 3e-6 : 3e-6) << "shares";
  reference().cross_entropy_of_shares(part.host(), elsewhere, scales, shares.host(), place, losses.host_vector());
  own().cross_entropy_of_shares(part.there(), elsewhere, scales, shares.there(), place, losses.vector());
  agree(part, "cross_entropy_of_shares", 3);
  EXPECT_LT(losses.difference(), 3e-6) << "losses of shares";
}

/// As of an adapter's two gradients: of many tokens, or of a wide layer.
/// Rows, columns and vectors so long that devices share them out.
TEST_P(Devices, LongRowsAndColumns) {
  Numbers a = activations(between(260, 800), between(1, 40)), sums = f32(1, a.host().columns);
  reference().sum_columns(0.5F, a.host(), a.host(), sums.host_vector());
  own().sum_columns(0.5F, a.there(), a.there(), sums.vector());
  EXPECT_LT(sums.difference(), 2e-6) << "sum_columns";
  Numbers logits = activations(2, between(16384, 17000), 4), losses = f32(1, 2);
  const std::vector<std::int32_t> labels = integers(2, logits.host().columns);
  const std::vector<float> scales = {1, -0.5F};
  reference().cross_entropy(logits.host(), labels, scales, losses.host_vector());
  own().cross_entropy(logits.there(), labels, scales, losses.vector());
  agree(logits, "cross_entropy");
  EXPECT_LT(losses.difference(), 2e-6) << "losses";
  Numbers numbers = f32(1, between(8192, 30000));
  std::vector<double> expected(3), norms(3);
  const std::shared_ptr<void> memory(device_->allocate(24), [&](void* address) { device_->free(address); });
  const auto parts = [](ConstVector all) {
    const std::int64_t count = std::ssize(all);
    return std::vector<ConstVector>{all.range(0, count - 1), all.range(0, 0), all.range(count - 1, count)};
  };
  reference().squared_norms(parts(numbers.host_vector()), expected);
  own().squared_norms(parts(numbers.vector()), {static_cast<double*>(memory.get()), 3});
  device_->download(memory.get(), std::as_writable_bytes(std::span(norms)));
  device_->wait();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(norms[i], expected[i], 1e-12 * expected[i]);
}

TEST_P(Devices, OptimizerAndNorms) {
  const std::int64_t count = between(1, 2000);
  Numbers g = f32(1, count), p = f32(1, count), m = f32(1, count), v = f32(1, count, 0);
  const AdamWStep step{1e-2, 0.9, 0.99, 1e-8, 0.1, 0.5, between(1, 50)};
  reference().adamw(step, g.host_vector(), p.host_vector(), m.host_vector(), v.host_vector());
  own().adamw(step, g.vector(), p.vector(), m.vector(), v.vector());
  for (Numbers* numbers : {&p, &m, &v}) EXPECT_LT(numbers->difference(), 1e-6);
  const std::int64_t half = count / 2;
  const std::vector<ConstVector> here = {g.host_vector().range(0, half), g.host_vector().range(half, count)};
  const std::vector<ConstVector> there = {g.vector().range(0, half), g.vector().range(half, count)};
  std::vector<double> expected(2), sums(2);
  std::shared_ptr<void> memory(device_->allocate(16), [&](void* address) { device_->free(address); });
  reference().squared_norms(here, expected);
  own().squared_norms(there, {static_cast<double*>(memory.get()), 2});
  device_->download(memory.get(), std::as_writable_bytes(std::span(sums)));
  device_->wait();
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(sums[i], expected[i], 1e-12 * expected[i]);
}

TEST_P(Devices, OptimizerStepsOfManyTasks) {
  std::vector<Numbers> all;
  std::vector<AdamWCall> here, there;
  for (int task = 0; task < 5; ++task) {
    const std::int64_t count = task == 2 ? 0 : between(1, 2500);
    for (int i = 0; i < 4; ++i) all.push_back(f32(1, count));
    if (count > 0) reference().scale(0, all.back().host(), false, all.back().host());
    own().scale(0, all.back().there(), false, all.back().there());
  }
  for (std::size_t task = 0; task < 5; ++task) {
    AdamWStep step;
    step.learning_rate = 0.01 * static_cast<double>(task + 1), step.weight_decay = 0.1, step.gradient_scale = 0.5;
    step.step = static_cast<std::int64_t>(task) + 1;
    Numbers* of = &all[4 * task];
    here.push_back({step, of[0].host_vector(), of[1].host_vector(), of[2].host_vector(), of[3].host_vector()});
    there.push_back({step, of[0].vector(), of[1].vector(), of[2].vector(), of[3].vector()});
  }
  reference().adamw_group(here), own().adamw_group(there);
  for (Numbers& numbers : all) EXPECT_LT(numbers.difference(), 3e-6);
}

TEST_P(Devices, NormsOfLowRankSums) {
  const std::int64_t out = between(1, 90), rank = between(1, 20);
  Numbers b = f32(out, rank), with_weight = f32(rank, out), bias = f32(1, out), inner = f32(rank, rank),
          squares = f32(1, out);
  reference().low_rank_squares(0.7F, b.host(), with_weight.host(), bias.host_vector(), inner.host(),
                               squares.host_vector());
  own().low_rank_squares(0.7F, b.there(), with_weight.there(), bias.vector(), inner.there(), squares.vector());
  EXPECT_LT(squares.difference(), 2e-6);
  reference().inverse_roots(squares.host_vector(), squares.host_vector());
  own().inverse_roots(squares.vector(), squares.vector());
  EXPECT_LT(squares.difference(), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(All, Devices,
                         ::testing::Combine(::testing::ValuesIn(testing::kDevices), ::testing::Range(1, 5)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).name) + "_" +
                                  std::to_string(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace braid::kernels
