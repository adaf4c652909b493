#include "exec/adapters/adapter.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/random.h"

namespace braid::exec {

using costmodel::AdapterMethod;
using costmodel::Module;
using costmodel::ModuleGroup;

namespace {

/// Fills a matrix as it begins; `key` is that of what is random.
void begin(kernels::Matrix matrix, Initial initial, std::uint64_t key) {
  RandomStream random(key);
  const double bound = 1.0 / std::sqrt(static_cast<double>(matrix.columns));
  for (std::int64_t i = 0; i < matrix.rows * matrix.columns; ++i) {
    double number = 0;
    switch (initial) {
      case Initial::zeros:
      case Initial::row_norms:  // once the weights are there
        break;
      case Initial::ones:
        number = 1;
        break;
      case Initial::tenth:
        number = 0.1;
        break;
      case Initial::uniform:
        number = (2 * random.next_uniform() - 1) * bound;
        break;
      case Initial::normal:
        number = random.next_normal();
        break;
      case Initial::small_normal:
        number = 0.02 * random.next_normal();
        break;
    }
    matrix.data[i] = static_cast<float>(number);
  }
}

/// A's have the key that they had when there was no other role.
std::uint64_t key_of(std::uint64_t seed, std::int32_t layer, const ParameterShape& parameter) {
  const std::uint64_t words[] = {seed, static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(parameter.module),
                                 static_cast<std::uint64_t>(parameter.role)};
  return mix_key(std::span(words).first(parameter.role == Role::a ? 3 : 4));
}

}  // namespace

Adapter::Adapter(const costmodel::BackboneShape& backbone, const costmodel::AdapterShape& shape, HeldLayers layers,
                 std::uint64_t seed)
    : backbone_(backbone), shape_(shape), layers_(std::move(layers)), table_(layer_parameters(backbone, shape)) {
  for (const ParameterShape& parameter : table_) layer_numbers_ += parameter.count();
  const auto numbers = static_cast<std::size_t>(layer_numbers_ * layers_.count());
  for (DeviceArray<float>* part : {&parameters_, &gradients_, &first_moments_, &second_moments_})
    *part = std::vector<float>(numbers, 0.0F);
  for (const Module module : costmodel::kModules) {
    if (!shape.has(module)) continue;
    largest_.in = std::max(largest_.in, costmodel::module_shape(backbone, module).in);
    largest_.out = std::max(largest_.out, costmodel::module_shape(backbone, module).out);
  }
  draw_parameters(seed);
  if (shape.method == AdapterMethod::vera) draw_random_matrices(seed);
  if (shape.method == AdapterMethod::diff_pruning) draw_places(seed);
}

void Adapter::hold_exact_sums() {
  high_.assign(static_cast<std::size_t>(gradients_.size()), 0);
  low_ = high_;
}

kernels::ExactSums Adapter::sums_of(kernels::Matrix gradient) {
  summed_ = true;
  const std::ptrdiff_t first = gradient.data - gradients_.data();
  return {high_.data() + first, low_.data() + first, gradient.rows, gradient.columns, gradient.stride};
}

std::vector<double> Adapter::sums(planner::LayerRange layers) const {
  const std::ptrdiff_t first = layers_.place(layers.first) * layer_numbers_, count = layers.count() * layer_numbers_;
  std::vector<double> all(high_.begin() + first, high_.begin() + first + count);
  all.insert(all.end(), low_.begin() + first, low_.begin() + first + count);
  return all;
}

void Adapter::set_sums(planner::LayerRange layers, std::span<const double> sums) {
  summed_ = true;
  const std::ptrdiff_t first = layers_.place(layers.first) * layer_numbers_;
  const std::size_t count = static_cast<std::size_t>(layers.count() * layer_numbers_);
  std::ranges::copy(sums.first(count), high_.begin() + first);
  std::ranges::copy(sums.subspan(count), low_.begin() + first);
}

void Adapter::settle_sums() {
  if (!std::exchange(summed_, false)) return;
  for (std::size_t i = 0; i < high_.size(); ++i) gradients_.data()[i] = static_cast<float>(high_[i] + low_[i]);
  std::ranges::fill(high_, 0.0);
  std::ranges::fill(low_, 0.0);
}

void Adapter::restore(const State& state) {
  parameters_.assign(state.parameters);
  first_moments_.assign(state.first_moments);
  second_moments_.assign(state.second_moments);
  changed();
}

void Adapter::move_to(kernels::Device& device) {
  device_ = &device;
  for (DeviceArray<float>* part :
       {&parameters_, &gradients_, &first_moments_, &second_moments_, &random_a_, &random_b_})
    part->move_to(device);
  for (auto& [where, places] : places_) {
    places.rows.move_to(device);
    places.columns.move_to(device);
  }
}

void Adapter::draw_parameters(std::uint64_t seed) {
  for (const std::int32_t layer : layers_.numbers()) {
    std::int64_t offset = 0;
    for (const ParameterShape& parameter : table_) {
      begin(view(Part::parameter, layer, offset, parameter.rows, parameter.columns), parameter.initial,
            key_of(seed, layer, parameter));
      offset += parameter.count();
    }
  }
}

/// Kaiming's uniform numbers, as PEFT draws them, of a stream of our own.
void Adapter::draw_random_matrices(std::uint64_t seed) {
  constexpr std::uint64_t kA = 1, kB = 2;
  const auto drawn = [&](std::int64_t rows, std::int64_t columns, std::uint64_t which) {
    const std::uint64_t words[] = {seed, which};
    RandomStream random(mix_key(words));
    const double bound = std::sqrt(6.0 / static_cast<double>(columns));
    std::vector<float> numbers(static_cast<std::size_t>(rows * columns));
    for (float& number : numbers) number = static_cast<float>((2 * random.next_uniform() - 1) * bound);
    return numbers;
  };
  random_a_ = drawn(shape_.rank, largest_.in, kA);
  random_b_ = drawn(largest_.out, shape_.rank, kB);
}

/// As many places of each weight as it has numbers, all as likely.
void Adapter::draw_places(std::uint64_t seed) {
  for (const std::int32_t layer : layers_.numbers()) {
    for (const ParameterShape& parameter : table_) {
      const costmodel::ModuleShape weight = costmodel::module_shape(backbone_, parameter.module);
      RandomStream random(key_of(seed, layer, parameter));
      std::set<std::int64_t> chosen;
      while (std::ssize(chosen) < parameter.columns)
        chosen.insert(static_cast<std::int64_t>(random.next_below(static_cast<std::uint64_t>(weight.in * weight.out))));
      std::vector<std::int32_t> rows, columns;
      for (const std::int64_t place : chosen) {
        rows.push_back(static_cast<std::int32_t>(place / weight.in));
        columns.push_back(static_cast<std::int32_t>(place % weight.in));
      }
      places_[{layer, parameter.module}] = {std::move(rows), std::move(columns)};
    }
  }
}

const ParameterShape* Adapter::find(Role role, Module module, std::int64_t& offset) const {
  offset = 0;
  for (const ParameterShape& parameter : table_) {
    if (parameter.role == role && parameter.module == module) return &parameter;
    offset += parameter.count();
  }
  return nullptr;
}

kernels::Matrix Adapter::view(Part part, std::int32_t layer, std::int64_t offset, std::int64_t rows,
                              std::int64_t columns) {
  DeviceArray<float>& numbers = part == Part::parameter ? parameters_ : gradients_;
  return {numbers.data() + layers_.place(layer) * layer_numbers_ + offset, rows, columns};
}

kernels::Matrix Adapter::matrix(Part part, std::int32_t layer, Role role, Module module) {
  std::int64_t offset = 0;
  const ParameterShape* parameter = find(role, module, offset);
  BRAID_CHECK(parameter, "a {} adapter has no matrix {} beside {}", name(shape_.method), static_cast<int>(role),
              module_name(module));
  return view(part, layer, offset, parameter->rows, parameter->columns);
}

kernels::Vector Adapter::row(Part part, std::int32_t layer, Role role, Module module) {
  const kernels::Matrix numbers = matrix(part, layer, role, module);
  return {numbers.data, numbers.rows * numbers.columns};
}

kernels::Matrix Adapter::stacked_a(Part part, std::int32_t layer, ModuleGroup group) {
  for (const Module module : costmodel::targets_of(group)) {
    if (!shape_.has(module)) continue;
    const kernels::Matrix first = a(part, layer, module);
    return {first.data, costmodel::low_rank_width(shape_, group), first.columns};
  }
  return {};
}

Places& Adapter::places(std::int32_t layer, Module module) {
  return places_[{layer, module}];
}

Adapter::Norms& Adapter::norms(std::int32_t layer, Module module) {
  Norms& norms = norms_[{layer, module}];
  if (norms.inverse.empty()) {
    const costmodel::ModuleShape weight = costmodel::module_shape(backbone_, module);
    norms.inverse = std::vector<float>(static_cast<std::size_t>(weight.out));
    if (device_) norms.inverse.move_to(*device_);
  }
  return norms;
}

void Adapter::begin_magnitude(std::int32_t layer, Module module, std::span<const float> squares) {
  const kernels::Vector magnitude = row(Part::parameter, layer, Role::magnitude, module);
  std::transform(squares.begin(), squares.end(), magnitude.begin(), [](float square) { return std::sqrt(square); });
}

kernels::Vector Adapter::gradients(planner::LayerRange layers) {
  if (layers.count() == 0) return {};
  const std::int64_t first = layers_.place(layers.first);
  BRAID_CHECK(layers_.place(layers.last - 1) - first + 1 == layers.count(), "layers {}..{} are no run here",
              layers.first, layers.last);
  return gradients_.view().range(first * layer_numbers_, (first + layers.count()) * layer_numbers_);
}

}  // namespace braid::exec
