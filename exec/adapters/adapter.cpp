#include "exec/adapters/adapter.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace braid::exec {

using costmodel::Module;
using costmodel::ModuleGroup;

Adapter::Adapter(const costmodel::BackboneShape& backbone, const costmodel::AdapterShape& shape, HeldLayers layers,
                 std::uint64_t seed)
    : backbone_(backbone), shape_(shape), layers_(std::move(layers)) {
  for (const ModuleGroup group : costmodel::kModuleGroups) {
    for (const Module module : costmodel::targets_of(group)) {
      if (!shape.has(module)) continue;
      places_[static_cast<std::size_t>(module)].a = layer_numbers_;
      layer_numbers_ += shape.rank_of(module) * costmodel::module_shape(backbone, module).in;
    }
    for (const Module module : costmodel::targets_of(group)) {
      if (!shape.has(module)) continue;
      places_[static_cast<std::size_t>(module)].b = layer_numbers_;
      layer_numbers_ += shape.rank_of(module) * costmodel::module_shape(backbone, module).out;
    }
  }
  const auto numbers = static_cast<std::size_t>(layer_numbers_ * layers_.count());
  for (std::vector<float>* part : {&parameters_, &gradients_, &first_moments_, &second_moments_})
    part->assign(numbers, 0.0F);
  for (const std::int32_t layer : layers_.numbers()) {
    for (const Module module : costmodel::kModules) {
      if (!shape.has(module)) continue;
      const std::uint64_t words[] = {seed, static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(module)};
      RandomStream random(mix_key(words));
      const kernels::Matrix matrix = a(Part::parameter, layer, module);
      const double bound = 1.0 / std::sqrt(static_cast<double>(matrix.columns));
      for (std::int64_t i = 0; i < matrix.rows * matrix.columns; ++i)
        matrix.data[i] = static_cast<float>((2 * random.next_uniform() - 1) * bound);
    }
  }
}

kernels::Matrix Adapter::view(Part part, std::int32_t layer, std::int64_t offset, std::int64_t rows,
                              std::int64_t columns) {
  BRAID_CHECK(offset >= 0, "not a target");
  std::vector<float>& numbers = part == Part::parameter ? parameters_ : gradients_;
  return {numbers.data() + layers_.place(layer) * layer_numbers_ + offset, rows, columns};
}

kernels::Matrix Adapter::stacked_a(Part part, std::int32_t layer, ModuleGroup group) {
  for (const Module module : costmodel::targets_of(group)) {
    if (shape_.has(module))
      return view(part, layer, places_[static_cast<std::size_t>(module)].a, costmodel::low_rank_width(shape_, group),
                  costmodel::module_shape(backbone_, module).in);
  }
  return {};
}

kernels::Matrix Adapter::a(Part part, std::int32_t layer, Module module) {
  return view(part, layer, places_[static_cast<std::size_t>(module)].a, shape_.rank_of(module),
              costmodel::module_shape(backbone_, module).in);
}

kernels::Matrix Adapter::b(Part part, std::int32_t layer, Module module) {
  return view(part, layer, places_[static_cast<std::size_t>(module)].b, costmodel::module_shape(backbone_, module).out,
              shape_.rank_of(module));
}

std::span<float> Adapter::gradients(planner::LayerRange layers) {
  if (layers.count() == 0) return {};
  const std::int64_t first = layers_.place(layers.first);
  BRAID_CHECK(layers_.place(layers.last - 1) - first + 1 == layers.count(), "layers {}..{} are no run here",
              layers.first, layers.last);
  return std::span(gradients_)
      .subspan(static_cast<std::size_t>(first * layer_numbers_),
               static_cast<std::size_t>(layers.count() * layer_numbers_));
}

}  // namespace braid::exec
