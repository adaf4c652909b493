#pragma once

#include <algorithm>
#include <array>

#include "costmodel/profile/profile.h"

namespace braid::costmodel {

struct GpuKernel;

/// Attention of any sequences: products, and what is read and written. Sequences of one launch add up, as
/// multiprocessors take them one after another while the memory is read for all.
struct AttentionWork {
  double product_seconds = 0;  ///< at the rate that FlashAttention reaches; eager: of all kernels, save launches
  double memory_seconds = 0;   ///< FlashAttention: of its bytes at the datasheet's bandwidth
  double launches = 0;         ///< kernels of all sequences together; 0: measured, with its launch

  AttentionWork& operator+=(const AttentionWork& other) {
    product_seconds += other.product_seconds;
    memory_seconds += other.memory_seconds;
    launches = std::max(launches, other.launches);
    return *this;
  }
};

/// What an operator costs on a GPU that nobody holds: the sum of its kernels (gpu_kernels.h), products by gemm_seconds,
/// the others by what they read and write, each with its launch; attention at the share of the peak rate that
/// FlashAttention-2's paper reports, or eager as its kernels add up. Frozen layers compute no weight gradient.
class Roofline {
 public:
  /// With the coefficients of the device's generation.
  Roofline(const Device& device, DataType type);
  /// Of a profile's device; with coefficients fitted on its own entries where it has them. Kernels that move numbers in
  /// other ways than copies are as far from these as in the device's generation. At a lower clock multiprocessors
  /// and the cache of products' tiles are slower by as much, the memory is not.
  explicit Roofline(const Profile& profile);

  const Device& device() const { return device_; }
  DataType type() const { return type_; }

  struct Cost {
    double seconds = 0;            ///< on the GPU
    double launches = 0;           ///< kernels
    double least = 0;              ///< seconds at the datasheet's rates
    AttentionWork attention = {};  ///< of attention: what the call adds to a launch

    /// u_a of MuxTune Eq. 3, in (0, 1].
    double utilization() const { return seconds > 0 ? least / seconds : 1; }
  };
  /// Of one call of one kind of work; `count` is not applied. Throws Error for messages and collectives, which need a
  /// link.
  Cost cost(const OperatorCall& call) const;
  /// t_a of MuxTune Eq. 3 for an adapter.
  double seconds(const OperatorCall& call) const { return cost(call).seconds; }
  /// Of one launch; `forward` matters to attention alone.
  double seconds(const GpuKernel& kernel, bool forward) const;

  /// How long a launch of so much attention takes.
  double seconds(const AttentionWork& work) const;
  double utilization(const OperatorCall& call) const { return cost(call).utilization(); }

  /// Bytes read from and written to memory, each operand of each kernel once.
  double traffic(const OperatorCall& call) const;

 private:
  double least_seconds(const GpuKernel& kernel) const;
  AttentionWork attention_work(const GpuKernel& kernel, bool forward) const;
  double batched_seconds(const GpuKernel& kernel) const;

  Device device_;  // as it is clocked
  DataType type_;
  AttentionKind attention_ = AttentionKind::flash;
  GemmModel products_;
  std::array<StreamCoefficients, kStreamKindCount> streams_;
};

}  // namespace braid::costmodel
