#pragma once

#include <array>
#include <cstdint>

#include "costmodel/gpu/device.h"

namespace braid::costmodel {

/// Y [rows, out] = X [rows, in] · W [in, out].
struct GemmShape {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;

  double flops() const { return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out); }
  /// X and W read and Y written once.
  double bytes(DataType type) const {
    const auto numbers = static_cast<double>(rows * in + in * out + rows * out);
    return numbers * static_cast<double>(bytes_of(type));
  }
};

/// Rows and columns of Y that one thread block makes.
struct GemmTile {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
inline constexpr std::array<GemmTile, 4> kGemmTiles = {{{256, 128}, {128, 128}, {64, 128}, {64, 64}}};

/// How a generation of GPUs departs from its datasheet at matrix products.
struct GemmCoefficients {
  double launch_seconds = 0;        ///< of any kernel
  double block_seconds = 0;         ///< a thread block's start and end
  double block_depth = 0;           ///< steps of K that filling and draining a block's pipeline takes
  double rate_efficiency = 1;       ///< of the peak rate, inside an endless tile
  double edge_cost = 0;             ///< what a tile's edges take, in rows and columns of it
  double bandwidth_efficiency = 1;  ///< of the memory's bandwidth
  double wave_rounding = 1;         ///< 1: a wave that is not full costs a whole one; 0: its share
  double split_cost = 1;       ///< writes and reads of partial results when K is split, over the memory's time for them
  double cache_bandwidth = 1;  ///< what tiles read again, over the memory's bandwidth
  bool operator==(const GemmCoefficients&) const = default;
};

/// Time of one product on an otherwise idle GPU, the best over tiles and over K whole or in halves: waves of thread
/// blocks over the multiprocessors, memory and cache traffic that overlap with them, and a launch.
///
/// Never falls with more rows, columns or depth, never lies below the roofline max(FLOPs / peak, bytes / bandwidth) of
/// the datasheet, and a product cut into n along `in` or `out` never costs less than an n-th.
class GemmModel {
 public:
  GemmModel(const Device& device, DataType type, const GemmCoefficients& coefficients);
  double seconds(const GemmShape& shape) const;
  const GemmCoefficients& coefficients() const { return coefficients_; }

 private:
  static constexpr std::size_t kSplits = 2, kWays = kSplits * kGemmTiles.size();

  /// Of each tile with K whole, then with K in halves, side by side so that one instruction does for all: sizes, and
  /// what a multiply-add of the tile's whole area takes, edges included.
  struct Ways {
    double by_rows[kWays], by_columns[kWays];  ///< inverses
    double edge[kWays];                        ///< rows and columns together
    double step_seconds[kWays];                ///< one of K
    double parts[kWays], share[kWays];         ///< of K, and their inverse
  } ways_;
  GemmCoefficients coefficients_;
  DataType type_;
  double peak_seconds_ = 0;  ///< of one FLOP, by the datasheet
  double byte_seconds_ = 0;  ///< likewise of one byte
  double effective_byte_seconds_ = 0;
  double cached_number_seconds_ = 0;
  double per_processor_ = 0;
};

double gemm_seconds(const Device& device, DataType type, const GemmCoefficients& coefficients, const GemmShape& shape);

/// Fitted on the linear layers of Llama-2-7B and 70B in Vidur's published profiles of A40, A100 and H100 (braid profile
/// --crossvalidate prints this fit, and how well one on 7B alone foretells 70B); other GPUs have those of the nearest
/// generation.
const GemmCoefficients& gemm_coefficients(Generation generation);

}  // namespace braid::costmodel
