#include "exec/weight_shares.h"

#include <algorithm>

#include "base/error.h"

namespace braid::exec {
namespace {

constexpr std::size_t kGrain = 64;  // bytes that no two ranks share

std::size_t bytes_of(kernels::FrozenLinear& product) {
  std::size_t sum = 0;
  for (const std::span<std::byte> part : product.storage()) sum += part.size();
  return sum;
}

/// Calls visit(mine, first, count) for what [first, last) and each stretch have in common, `mine` beginning there.
template <typename Stretches, typename Visit>
void for_common(const Stretches& stretches, std::size_t first, std::size_t last, const Visit& visit) {
  for (const auto& stretch : stretches) {
    const std::size_t from = std::max(first, stretch.first);
    const std::size_t to = std::min(last, stretch.first + stretch.bytes.size());
    if (from < to) visit(stretch.bytes.subspan(from - stretch.first, to - from), from - first);
  }
}

}  // namespace

WeightShares::WeightShares(Communicator& communicator, kernels::Device& device)
    : communicator_(communicator), device_(device) {}

std::size_t WeightShares::border(std::size_t size, int rank) const {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  const std::size_t each = ((size + ranks - 1) / ranks + kGrain - 1) / kGrain * kGrain;
  return std::min(size, each * static_cast<std::size_t>(rank));
}

std::vector<WeightShares::Stretch> WeightShares::stretches(const Products& products, const Kept& kept) const {
  std::vector<Stretch> all;
  std::size_t first = 0;
  for (std::size_t group = 0; group < products.size(); ++group) {
    if (!products[group]) continue;
    const std::vector<std::span<std::byte>> parts = products[group]->storage();
    BRAID_CHECK(kept.parts[group] <= parts.size(), "{} parts of a product of {}", kept.parts[group], parts.size());
    for (const std::span<std::byte> part : std::span(parts).first(kept.parts[group])) {
      all.push_back({first, part});
      first += part.size();
    }
  }
  BRAID_CHECK(first == kept.size, "a layer of {} bytes is gathered into {}", kept.size, first);
  return all;
}

void WeightShares::keep(LayerWeights& layer) {
  Kept& kept = kept_.emplace_back();
  for (std::size_t group = 0; group < layer.products.size(); ++group) {
    if (!layer.products[group]) continue;
    kept.parts[group] = layer.products[group]->storage().size();
    kept.size += bytes_of(*layer.products[group]);
  }
  kept.offset = used_;
  used_ += border(kept.size, 1);
  const std::size_t first = border(kept.size, communicator_.rank());
  const std::size_t last = border(kept.size, communicator_.rank() + 1);
  if (first < last)
    kept.mine = {device_.allocate(static_cast<Bytes>(last - first)), [this](void* memory) { device_.free(memory); }};
  for_common(stretches(layer.products, kept), first, last, [&](std::span<std::byte> part, std::size_t place) {
    device_.copy(part.data(), static_cast<std::byte*>(kept.mine.get()) + place, std::ssize(part));
  });
  device_.wait();  // as the layer before goes
  whole_ = std::move(layer.products);
  layer.products = {};
}

void WeightShares::publish() {
  shares_ = communicator_.share_memory(used_);
  for (Kept& kept : kept_) {
    const std::size_t first = border(kept.size, communicator_.rank());
    const std::size_t last = border(kept.size, communicator_.rank() + 1);
    device_.copy(kept.mine.get(), shares_->mine().data() + kept.offset, static_cast<Bytes>(last - first));
    device_.wait();
    kept.mine.reset();
  }
  shares_->publish();
}

void WeightShares::gather(std::size_t layer, std::vector<LayerWeights>& layers) {
  if (gathered_ == layer) return;
  // What the host writes must not be what the device still reads.
  if (!communicator_.on_devices()) device_.wait();
  if (gathered_) whole_ = std::move(layers[*gathered_].products);
  gathered_ = layer;
  const Kept& kept = kept_[layer];
  const std::vector<Stretch> all = stretches(whole_, kept);
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const std::size_t first = border(kept.size, rank), last = border(kept.size, rank + 1);
    for_common(all, first, last,
               [&](std::span<std::byte> part, std::size_t place) { shares_->read(rank, kept.offset + place, part); });
  }
  layers[layer].products = std::move(whole_);
}

void WeightShares::compile() const {
  for (const auto& product : whole_)
    if (product) product->compile();
}

}  // namespace braid::exec
