#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "cuda_on_cpu_device.h"
#include "kernels/cuda/bf16.h"
#include "kernels/device.h"
#include "testing.h"

/// Every operator of every device against the reference, on the same numbers, of any shape: a row of a table each.
namespace braid::kernels {
namespace {

using costmodel::DataType;
using testing::OwnedMatrix;

struct Tested {
  const char* name;
  std::unique_ptr<Device> (*make)(std::uint64_t seed);
};

const Tested kDevices[] = {
    {"cpu", [](std::uint64_t) { return make_cpu_device(); }},
    {"cuda_on_cpu", [](std::uint64_t seed) { return make_cuda_on_cpu_device(Arithmetic::f32, seed); }},
    {"cuda", [](std::uint64_t) { return make_cuda_device(0); }},
    {"cuda_f32", [](std::uint64_t) { return make_cuda_device(0, Arithmetic::f32); }},
    {"cuda_on_cpu_bf16", [](std::uint64_t seed) { return make_cuda_on_cpu_device(Arithmetic::bf16, seed); }},
};

float rounded(float number, DataType type) {
  return type == DataType::bf16 ? static_cast<float>(cuda::Bf16(number)) : number;
}

/// Whether rows of a case lie on 16 bytes and sizes are mostly multiples of eight, so that devices may take many
/// numbers at once; else neither is so.
bool on_16_bytes = false;

/// Numbers of a case: on the host for the reference, and on the device, as it holds them, for the device's operators.
class Numbers {
 public:
  Numbers(Device& device, RandomStream& random, std::int64_t rows, std::int64_t columns, DataType type,
          float deviation = 1)
      : Numbers(device, random, rows, columns, type, type, deviation) {}
  /// Of type `type`, but as `rounds` rounds them.
  Numbers(Device& device, RandomStream& random, std::int64_t rows, std::int64_t columns, DataType type, DataType rounds,
          float deviation)
      : device_(&device),
        type_(type),
        host_(rows, columns),
        stride_(on_16_bytes ? (columns + 15) / 8 * 8 : columns + 5) {
    testing::fill_normal(host_, random, deviation);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < columns; ++i) host_.at(row, i) = rounded(host_.at(row, i), rounds);
    const Bytes bytes = std::max<Bytes>(rows * stride_, 1) * costmodel::bytes_of(type);
    memory_ = {device.allocate(bytes), [&device](void* memory) { device.free(memory); }};
    std::vector<std::byte> stored(static_cast<std::size_t>(bytes), std::byte{0xFF});
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < columns; ++i) store(stored, row * stride_ + i, host_.at(row, i));
    device.upload(stored, memory_.get());
  }

  Matrix host() { return host_; }
  Matrix there() const { return {static_cast<float*>(memory_.get()), host_.rows(), host_.columns(), stride_, type_}; }
  /// Of one row of f32.
  Vector host_vector() { return {host().row(0), host_.columns()}; }
  Vector vector() const { return {static_cast<float*>(memory_.get()), host_.columns()}; }

  /// What the device has now, beside what the host has.
  double difference() {
    std::vector<std::byte> stored(
        static_cast<std::size_t>(std::max<Bytes>(host_.rows() * stride_, 1) * costmodel::bytes_of(type_)));
    device_->download(memory_.get(), stored);
    device_->wait();
    double most = 1, largest = 0;
    for (std::int64_t row = 0; row < host_.rows(); ++row) {
      for (std::int64_t i = 0; i < host_.columns(); ++i) {
        most = std::max(most, std::abs(double{host_.at(row, i)}));
        const double difference = std::abs(double{load(stored, row * stride_ + i)} - double{host_.at(row, i)});
        largest = std::max(largest, std::isnan(difference) ? 1e30 : difference);
      }
    }
    return largest / most;
  }

 private:
  void store(std::vector<std::byte>& bytes, std::int64_t place, float number) const {
    if (type_ == DataType::f32) {
      std::memcpy(bytes.data() + 4 * place, &number, 4);
    } else {
      const cuda::Bf16 half(number);
      std::memcpy(bytes.data() + 2 * place, &half, 2);
    }
  }
  float load(const std::vector<std::byte>& bytes, std::int64_t place) const {
    float number = 0;
    cuda::Bf16 half;
    if (type_ == DataType::f32) {
      std::memcpy(&number, bytes.data() + 4 * place, 4);
      return number;
    }
    std::memcpy(&half, bytes.data() + 2 * place, 2);
    return static_cast<float>(half);
  }

  Device* device_;
  DataType type_;
  OwnedMatrix host_;
  std::int64_t stride_;
  std::shared_ptr<void> memory_;
};

class Devices : public ::testing::TestWithParam<std::tuple<Tested, int>> {
 protected:
  Devices()
      : random_(static_cast<std::uint64_t>(std::get<1>(GetParam()))),
        device_(make(std::get<0>(GetParam()), random_.next_below(1 << 20))) {}
  void SetUp() override {
    on_16_bytes = std::get<1>(GetParam()) % 2 == 0;
    if (!device_) GTEST_SKIP() << "no GPU here";
  }

  /// Null where the machine has none, unless BRAID_GPU says that it has.
  static std::unique_ptr<Device> make(const Tested& tested, std::uint64_t seed) {
    try {
      return tested.make(seed);
    } catch (const std::runtime_error&) {
      if (!std::string_view(tested.name).starts_with("cuda") || std::getenv("BRAID_GPU")) throw;
      return nullptr;
    }
  }

  std::int64_t between(std::int64_t first, std::int64_t last) {
    const std::int64_t any =
        first + static_cast<std::int64_t>(random_.next_below(static_cast<std::uint64_t>(last - first + 1)));
    if (!on_16_bytes || last - first < 16 || random_.next_below(4) == 0) return any;
    return std::clamp(any / 8 * 8, (first + 7) / 8 * 8, last);
  }
  DataType type() const { return device_->activations(); }
  Numbers activations(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, type(), deviation};
  }
  Numbers f32(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, DataType::f32, deviation};
  }
  /// Of an adapter, whose products with activations in bf16 are made of numbers rounded to that.
  Numbers parameters(std::int64_t rows, std::int64_t columns, float deviation = 1) {
    return {*device_, random_, rows, columns, DataType::f32, type(), deviation};
  }
  std::vector<std::int32_t> integers(std::int64_t count, std::int64_t below) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
    for (std::int32_t& number : numbers) number = static_cast<std::int32_t>(between(0, below - 1));
    return numbers;
  }
  /// Of one rounding of a result to the device's type, and some of f32 before.
  void agree(Numbers& numbers, const char* what, double roundings = 1) {
    EXPECT_LT(numbers.difference(), roundings * (type() == DataType::bf16 ? 4.1e-3 : 3e-6)) << what;
  }

  const Kernels& reference() { return reference_->kernels(); }
  const Kernels& own() { return device_->kernels(); }

  RandomStream random_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> reference_ = make_reference_device();
};

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

/// As of an adapter's two gradients: of many tokens, or of a wide layer.
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

INSTANTIATE_TEST_SUITE_P(All, Devices, ::testing::Combine(::testing::ValuesIn(kDevices), ::testing::Range(1, 5)),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param).name) + "_" +
                                  std::to_string(std::get<1>(tested.param));
                         });

}  // namespace
}  // namespace braid::kernels
