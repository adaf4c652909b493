#pragma once

#include "kernels/host_memory.h"

namespace braid::kernels {

/// A device as GPUs are to the host (activations in bf16, dropout within products) whose operators do nothing but count
/// themselves: what is left of a run's time is the executor's own. Its numbers mean nothing.
class IdleDevice final : public HostMemoryDevice {
 public:
  std::string_view name() const override { return "idle"; }
  bool host_memory() const override { return false; }
  costmodel::DataType activations() const override { return costmodel::DataType::bf16; }
  std::vector<std::string> library_versions() const override { return {}; }
  const Kernels& kernels() const override {
    static const Kernels table = {pack,    nothing, nothing, nothing, nothing, nothing, nothing, nothing,
                                  nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing,
                                  nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing,
                                  nothing, nothing, nothing, nothing, nothing, nothing, nothing, nothing,
                                  nothing, nothing, nothing, nothing, nothing, nullptr};
    return table;
  }
  /// Calls of operators so far, of all such devices.
  static std::int64_t calls() { return count(); }

 private:
  static std::int64_t& count() {
    static std::int64_t calls = 0;
    return calls;
  }

  /// Any operator.
  struct Nothing {
    template <typename... Arguments>
    using Operator = void(Arguments...);
    template <typename... Arguments>
    operator Operator<Arguments...>*() const {
      return [](Arguments...) { ++count(); };
    }
  };
  static constexpr Nothing nothing{};

  class Linear final : public FrozenLinear {
   public:
    Linear(std::int64_t out, std::int64_t in) : out_(out), in_(in) {}
    std::int64_t in() const override { return in_; }
    std::int64_t out() const override { return out_; }
    ConstVector bias() const override { return {}; }
    std::int64_t bytes() const override { return 0; }
    std::vector<std::span<std::byte>> storage() override { return {}; }
    void forward(ConstMatrix, Matrix) const override { ++count(); }
    void backward(ConstMatrix, Matrix) const override { ++count(); }

   private:
    std::int64_t out_, in_;
  };
  static std::unique_ptr<FrozenLinear> pack(ConstMatrix weight, std::span<const float>, bool, WeightType) {
    return std::make_unique<Linear>(weight.rows, weight.columns);
  }
};

}  // namespace braid::kernels
