#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "exec/buffer.h"
#include "exec/example/random_weights.h"

namespace braid::exec {

/// LoRA beside one frozen layer [width, width], of tenants that share the tokens in equal parts, in three designs:
///
/// - second pass: Y = X Wᵀ, then each tenant adds α S Bᵀ with S = dropout(X) Aᵀ; likewise going back;
/// - extended K: each tenant's S stands beside X in columns of its own, zeros where others' rows are, and all tenants'
///   α B beside W, so that one product over width + Σ rank columns yields Y. Going back dS stands beside dY and A
///   beneath W, where nothing is dropped; else the second pass is taken, as its mask is of dS A alone.
///
/// - joined: S first, then one product that adds each tenant's α S Bᵀ to its sums before it writes them
///   (FrozenLinear::forward_joined), going back those of dS A, masked; else of nothing, where the device has none.
///
/// A tenant's dA and dB are re-associated in all: (dY B)ᵀ X and dYᵀ S. Products drop what they read where the device's
/// do (Device::drops_in_products); else, and after `mask_first`, the dropped X is made by itself, and dS A masked
/// after.
class LoraDesigns {
 public:
  static constexpr std::int64_t kRank = 16;
  static constexpr float kScaling = 2;

  LoraDesigns(BufferPool& pool, std::int64_t width, std::int64_t tokens, std::int64_t tenants, float dropout)
      : pool_(pool),
        kernels_(pool.device().kernels()),
        width_(width),
        tokens_(tokens),
        extra_(tenants * kRank),
        dropout_(dropout),
        masks_first_(!pool.device().drops_in_products()) {
    const std::vector<float> weight = numbers(width * width, 1);
    const std::vector<float> down = numbers(extra_ * width, 2), up = numbers(extra_ * width, 3);
    frozen_ = pack(weight, width, width);
    std::vector<float> wide;
    for (std::int64_t row = 0; row < width; ++row) {
      append(wide, weight, row * width, width);
      for (std::int64_t t = 0; t < tenants; ++t)
        for (std::int64_t r = 0; r < kRank; ++r)
          wide.push_back(kScaling * up[static_cast<std::size_t>((t * width + row) * kRank + r)]);
    }
    wide_in_ = pack(wide, width, width + extra_);
    wide = weight;
    append(wide, down, 0, extra_ * width);
    wide_out_ = pack(wide, width + extra_, width);

    x_ = rows_of(numbers(tokens * width, 4));
    dy_ = rows_of(numbers(tokens * width, 5));
    for (Buffer* buffer : {&y_, &dx_, &dropped_}) *buffer = pool.take(tokens * width);
    for (const auto& [wide_rows, rows] : {std::pair{&wide_x_, &x_}, {&wide_dy_, &dy_}}) {
      *wide_rows = pool.take(tokens * (width + extra_));
      kernels_.copy(plain(*rows), left(*wide_rows));
    }
    for (std::int64_t t = 0; t < tenants; ++t) {
      Tenant& tenant = tenants_.emplace_back();
      tenant.first = tokens * t / tenants, tenant.last = tokens * (t + 1) / tenants, tenant.column = t * kRank;
      tenant.a = upload(std::span(down).subspan(static_cast<std::size_t>(t * kRank * width), matrix_size()));
      tenant.b = upload(std::span(up).subspan(static_cast<std::size_t>(t * kRank * width), matrix_size()));
      for (Buffer* buffer : {&tenant.d_a, &tenant.d_b}) {
        *buffer = pool.take_f32(kRank * width);
        kernels_.fill(0, buffer->row());
      }
      for (Buffer* buffer : {&tenant.s, &tenant.d_s}) *buffer = pool.take((tenant.last - tenant.first) * kRank);
    }
    positions_.resize(static_cast<std::size_t>(tokens));
    samples_.resize(static_cast<std::size_t>(tokens));
    for (std::size_t i = 0; i < positions_.size(); ++i) positions_[i] = static_cast<std::int32_t>(i);
  }

  void mask_first() { masks_first_ = true; }

  void frozen_forward() { frozen_->forward(plain(x_), plain(y_)); }
  void frozen_backward() { frozen_->backward(plain(dy_), plain(dx_)); }

  void second_pass_forward() {
    frozen_forward();
    down(plain(x_), [&](const Tenant& t) { return low(t, t.s); });
    run([&](const Tenant& t, Calls& calls) {
      calls.push_back(
          {kScaling, low(t, t.s), no, t.b.matrix(width_, kRank), yes, 1, plain(y_).row_range(t.first, t.last)});
    });
  }
  void extended_forward() {
    kernels_.fill(0, right(wide_x_));
    down(left(wide_x_), [&](const Tenant& t) { return own(t, right(wide_x_)); });
    wide_in_->forward(whole(wide_x_), plain(y_));
  }
  /// False where the device has none.
  bool joined_forward() {
    down(plain(x_), [&](const Tenant& t) { return low(t, t.s); });
    Calls added;
    for (const Tenant& t : tenants_)
      added.push_back(
          {kScaling, low(t, t.s), no, t.b.matrix(width_, kRank), yes, 1, plain(y_).row_range(t.first, t.last)});
    return frozen_->forward_joined(plain(x_), plain(y_), added);
  }
  bool joined_backward() {
    by_outputs(plain(dy_), [&](const Tenant& t) { return low(t, t.d_s); });
    by_inputs([&](const Tenant& t) { return low(t, t.d_s); }, false);
    Calls added;
    for (const Tenant& t : tenants_)
      added.push_back(
          dropping({1, low(t, t.d_s), no, t.a.matrix(kRank, width_), no, 1, plain(dx_).row_range(t.first, t.last)},
                   kernels::Dropped::sum, t));
    return frozen_->backward_joined(plain(dy_), plain(dx_), added);
  }
  void second_pass_backward() {
    frozen_backward();
    by_outputs(plain(dy_), [&](const Tenant& t) { return low(t, t.d_s); });
    by_inputs([&](const Tenant& t) { return low(t, t.d_s); }, true);
  }
  void extended_backward() {
    if (dropout_ > 0) return second_pass_backward();
    kernels_.fill(0, right(wide_dy_));
    by_outputs(left(wide_dy_), [&](const Tenant& t) { return own(t, right(wide_dy_)); });
    wide_out_->backward(whole(wide_dy_), plain(dx_));
    by_inputs([&](const Tenant& t) { return own(t, right(wide_dy_)); }, false);
  }

  /// How far the designs' results lie apart, relative to the largest number; of bf16 a hundredth is rounding.
  double difference() {
    const std::vector<float> one = results([&] { second_pass_forward(), second_pass_backward(); });
    const double extended = apart(one, results([&] { extended_forward(), extended_backward(); }));
    if (masks_first_ || !joined_forward()) return extended;
    const double joined = apart(one, results([&] { joined_forward(), joined_backward(); }));
    return std::isfinite(joined) ? std::max(extended, joined) : joined;
  }

 private:
  struct Tenant {
    std::int64_t first = 0, last = 0;  // rows
    std::int64_t column = 0;           // of its S beside X
    Buffer a, b, d_a, d_b, s, d_s;
  };
  using Calls = std::vector<kernels::MatmulCall>;
  static constexpr auto no = kernels::Transpose::no, yes = kernels::Transpose::yes;

  std::size_t matrix_size() const { return static_cast<std::size_t>(kRank * width_); }
  /// Random ones, which come again after a million or so: they are many.
  static std::vector<float> numbers(std::int64_t count, std::uint64_t key) {
    constexpr std::int64_t kPeriod = 1'000'003;
    std::vector<float> all = random_numbers(std::min(count, kPeriod), 0.2, key);
    all.reserve(static_cast<std::size_t>(count));
    while (std::ssize(all) < count) append(all, all, 0, std::min(count - std::ssize(all), kPeriod));
    return all;
  }
  static void append(std::vector<float>& to, const std::vector<float>& from, std::int64_t first, std::int64_t count) {
    const std::size_t begin = to.size();
    to.resize(begin + static_cast<std::size_t>(count));
    std::copy_n(from.begin() + first, count, to.begin() + static_cast<std::ptrdiff_t>(begin));
  }
  std::unique_ptr<kernels::FrozenLinear> pack(const std::vector<float>& weight, std::int64_t out,
                                              std::int64_t in) const {
    return kernels_.pack_linear({weight.data(), out, in}, {}, true, kernels::WeightType::bf16);
  }
  Buffer upload(std::span<const float> numbers) const {
    Buffer buffer = pool_.take_f32(std::ssize(numbers));
    pool_.device().upload(std::as_bytes(numbers), buffer.row().data);
    return buffer;
  }
  Buffer rows_of(const std::vector<float>& numbers) const {
    Buffer rows = pool_.take(std::ssize(numbers));
    kernels_.copy(upload(numbers).row(), rows.row());
    pool_.device().wait();  // as what was uploaded goes
    return rows;
  }

  kernels::Matrix plain(const Buffer& buffer) const { return buffer.matrix(tokens_, width_); }
  kernels::Matrix whole(const Buffer& buffer) const { return buffer.matrix(tokens_, width_ + extra_); }
  kernels::Matrix left(const Buffer& buffer) const { return whole(buffer).column_range(0, width_); }
  kernels::Matrix right(const Buffer& buffer) const { return whole(buffer).column_range(width_, width_ + extra_); }
  static kernels::Matrix low(const Tenant& t, const Buffer& buffer) { return buffer.matrix(t.last - t.first, kRank); }
  static kernels::Matrix own(const Tenant& t, kernels::Matrix beside) {
    return beside.row_range(t.first, t.last).column_range(t.column, t.column + kRank);
  }

  template <typename Add>
  void run(const Add& add) {
    Calls calls;
    for (const Tenant& tenant : tenants_) add(tenant, calls);
    kernels_.matmul_group(calls);
  }
  void drop(kernels::ConstMatrix x, bool accumulate, kernels::Matrix y) {
    kernels_.dropout({positions_, samples_, 7, dropout_, 0}, x, accumulate, y);
  }

  bool masks_apart() const { return dropout_ > 0 && masks_first_; }
  /// The product, which drops where products do.
  kernels::MatmulCall dropping(kernels::MatmulCall call, kernels::Dropped which, const Tenant& t) const {
    if (dropout_ == 0 || masks_first_) return call;
    const auto first = static_cast<std::size_t>(t.first), count = static_cast<std::size_t>(t.last - t.first);
    call.dropped = which;
    call.drop = {std::span(positions_).subspan(first, count), std::span(samples_).subspan(first, count), 7, dropout_,
                 0};
    return call;
  }

  template <typename Into>
  void down(kernels::ConstMatrix x, const Into& into) {
    if (masks_apart()) drop(x, false, plain(dropped_));
    const kernels::ConstMatrix input = masks_apart() ? kernels::ConstMatrix(plain(dropped_)) : x;
    run([&](const Tenant& t, Calls& calls) {
      calls.push_back(dropping({1, input.row_range(t.first, t.last), no, t.a.matrix(kRank, width_), yes, 0, into(t)},
                               kernels::Dropped::a, t));
    });
  }
  template <typename Into>
  void by_outputs(kernels::ConstMatrix dy, const Into& into) {
    run([&](const Tenant& t, Calls& calls) {
      const kernels::ConstMatrix rows = dy.row_range(t.first, t.last);
      calls.push_back({kScaling, rows, yes, low(t, t.s), no, 1, t.d_b.matrix(width_, kRank)});
      calls.push_back({kScaling, rows, no, t.b.matrix(width_, kRank), no, 0, into(t)});
    });
  }
  template <typename From>
  void by_inputs(const From& from, bool into_dx) {
    if (masks_apart()) drop(plain(x_), false, plain(dropped_));
    const kernels::ConstMatrix input = plain(masks_apart() ? dropped_ : x_);
    run([&](const Tenant& t, Calls& calls) {
      calls.push_back(dropping({1, from(t), yes, input.row_range(t.first, t.last), no, 1, t.d_a.matrix(kRank, width_)},
                               kernels::Dropped::b, t));
      if (into_dx && !masks_apart())
        calls.push_back(
            dropping({1, from(t), no, t.a.matrix(kRank, width_), no, 1, plain(dx_).row_range(t.first, t.last)},
                     kernels::Dropped::sum, t));
    });
    if (!into_dx || !masks_apart()) return;
    run([&](const Tenant& t, Calls& calls) {
      calls.push_back({1, from(t), no, t.a.matrix(kRank, width_), no, 0, plain(dropped_).row_range(t.first, t.last)});
    });
    drop(plain(dropped_), true, plain(dx_));
  }

  static double apart(const std::vector<float>& one, const std::vector<float>& other) {
    float most = 0, apart = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!std::isfinite(other[i])) return other[i];
      most = std::max(most, std::abs(one[i]));
      apart = std::max(apart, std::abs(one[i] - other[i]));
    }
    return apart / most;
  }

  /// Y, dX and each tenant's dA and dB, one after another.
  template <typename Work>
  std::vector<float> results(const Work& work) {
    for (const Tenant& tenant : tenants_)
      for (const Buffer* gradient : {&tenant.d_a, &tenant.d_b}) kernels_.fill(0, gradient->row());
    kernels_.fill(NAN, plain(y_)), kernels_.fill(NAN, plain(dx_));
    work();
    std::vector<float> all;
    const auto take = [&](kernels::ConstMatrix rows) {
      const Buffer widened = pool_.take_f32(rows.rows * rows.columns);
      kernels_.copy(rows, widened.matrix(rows.rows, rows.columns));
      std::vector<float> here(static_cast<std::size_t>(widened.size()));
      pool_.device().download(widened.row().data, std::as_writable_bytes(std::span(here)));
      pool_.device().wait();
      all.insert(all.end(), here.begin(), here.end());
    };
    take(plain(y_)), take(plain(dx_));
    for (const Tenant& tenant : tenants_)
      for (const Buffer* gradient : {&tenant.d_a, &tenant.d_b}) take(gradient->row());
    return all;
  }

  BufferPool& pool_;
  const kernels::Kernels& kernels_;
  std::int64_t width_, tokens_, extra_;
  float dropout_;
  bool masks_first_;
  std::unique_ptr<kernels::FrozenLinear> frozen_, wide_in_, wide_out_;
  Buffer x_, dy_, y_, dx_, dropped_, wide_x_, wide_dy_;
  std::vector<Tenant> tenants_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> samples_;
};

}  // namespace braid::exec
