#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "exec/layer_weights.h"
#include "exec/ranks/communicator.h"

namespace braid::exec {

/// The frozen products of a backbone's layers in shares (FSDP): each rank keeps an equal stretch of the bytes of every
/// layer, packed as the device wants them, and reads the other stretches from the others when it comes to a layer. Of
/// one layer at a time all is here; norms, embedding and head are whole on every rank. Shares lie where the
/// communicator shares memory: on the devices, where these read each other's, else on the host.
class WeightShares {
 public:
  /// All ranks of the run make them alike. Both outlive it.
  WeightShares(Communicator& communicator, kernels::Device& device);

  /// Takes a layer's products over, of which the rank keeps its share. Layers come in order.
  void keep(LayerWeights& layer);
  /// All ranks call this once all layers are kept.
  void publish();

  /// The layer's products come to be there, and those of the layer before are gone. `layers` are all that were kept.
  void gather(std::size_t layer, std::vector<LayerWeights>& layers);

  /// Bytes of other ranks' shares that the system counts as this process's too.
  Bytes mapped() const { return shares_ ? static_cast<Bytes>(shares_->mapped()) : 0; }

  /// What a gather makes of a layer is compiled.
  void compile() const;

 private:
  using Products = std::array<std::unique_ptr<kernels::FrozenLinear>, costmodel::kModuleGroups.size()>;
  /// Bytes [first, first + bytes.size()) of a layer.
  struct Stretch {
    std::size_t first = 0;
    std::span<std::byte> bytes;
  };
  struct Kept {
    std::size_t size = 0;        ///< bytes of the whole layer
    std::size_t offset = 0;      ///< of this rank's share, as of every rank's, in its memory
    std::shared_ptr<void> mine;  ///< until `publish`
    std::array<std::size_t, costmodel::kModuleGroups.size()> parts{};  ///< of each product's storage
  };

  /// The first bytes of every rank's share of a layer of `size`, and its size at the end.
  std::size_t border(std::size_t size, int rank) const;
  std::vector<Stretch> stretches(const Products& products, const Kept& kept) const;

  Communicator& communicator_;
  kernels::Device& device_;
  std::unique_ptr<SharedMemory> shares_;
  std::vector<Kept> kept_;
  std::size_t used_ = 0;  // bytes of every rank's memory
  Products whole_;        // that layers are gathered into, while no layer has them
  std::optional<std::size_t> gathered_;
};

}  // namespace braid::exec
