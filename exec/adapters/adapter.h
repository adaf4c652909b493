#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "exec/adapters/parameters.h"
#include "exec/device_array.h"
#include "exec/files/safetensors.h"
#include "exec/held_layers.h"
#include "kernels/matrix.h"
#include "kernels/outer_sums.h"
#include "planner/program/program.h"

namespace braid::exec {

/// Where the numbers of a Diff-pruned module's difference stand in its weight, row after row.
struct Places {
  DeviceArray<std::int32_t> rows, columns;
};

/// One task's adapter on the layers of a stage, with its gradient and AdamW moments. The numbers of a layer stand
/// together, layer after layer, as `layer_parameters` lists them. They begin on the host; matrices and vectors show
/// them where they are.
class Adapter {
 public:
  /// What is random depends on (seed, layer, module, place) alone, so that it does not matter how layers lie on stages.
  Adapter(const costmodel::BackboneShape& backbone, const costmodel::AdapterShape& shape, HeldLayers layers,
          std::uint64_t seed);

  /// All of it.
  void move_to(kernels::Device& device);

  const costmodel::AdapterShape& shape() const { return shape_; }
  const costmodel::BackboneShape& backbone() const { return backbone_; }
  const HeldLayers& layers() const { return layers_; }
  float scaling(costmodel::Module module) const { return static_cast<float>(shape_.scaling(module)); }

  /// What is kept of each number.
  enum class Part { parameter, gradient };
  /// Of a layer, which counts over the whole backbone; the adapter must have that matrix.
  kernels::Matrix matrix(Part part, std::int32_t layer, Role role, costmodel::Module module);
  kernels::Vector row(Part part, std::int32_t layer, Role role, costmodel::Module module);
  /// A of the group's targets, [sum of their r, in].
  kernels::Matrix stacked_a(Part part, std::int32_t layer, costmodel::ModuleGroup group);
  /// A of one target, [r, in], and its B, [out, r].
  kernels::Matrix a(Part part, std::int32_t layer, costmodel::Module module) {
    return matrix(part, layer, Role::a, module);
  }
  kernels::Matrix b(Part part, std::int32_t layer, costmodel::Module module) {
    return matrix(part, layer, Role::b, module);
  }
  const std::vector<ParameterShape>& table() const { return table_; }

  /// VeRA's frozen random matrices, [r, largest in] and [largest out, r], of which a module takes the first columns and
  /// the first rows.
  kernels::ConstMatrix random_a() const { return {random_a_.data(), shape_.rank, largest_.in}; }
  kernels::ConstMatrix random_b() const { return {random_b_.data(), largest_.out, shape_.rank}; }
  DeviceArray<float>& random_a_numbers() { return random_a_; }
  DeviceArray<float>& random_b_numbers() { return random_b_; }
  /// The places of a Diff-pruned module's difference.
  Places& places(std::int32_t layer, costmodel::Module module);

  /// DoRA: the magnitudes begin as the norms of the weight's rows; `squares` are those norms' squares, of the whole
  /// module. On the host.
  void begin_magnitude(std::int32_t layer, costmodel::Module module, std::span<const float> squares);
  /// DoRA's 1 / |W + scaling · B A|, one an output, which the adapter keeps until its parameters change: whoever finds
  /// them stale fills them in.
  struct Norms {
    DeviceArray<float> inverse;
    std::int64_t version = -1;
  };
  Norms& norms(std::int32_t layer, costmodel::Module module);
  std::int64_t version() const { return version_; }
  /// The parameters are others now.
  void changed() { ++version_; }

  /// How many numbers a layer has.
  std::int64_t layer_numbers() const { return layer_numbers_; }
  /// Layers [first, last), a run that is here.
  kernels::Vector gradients(planner::LayerRange layers);
  kernels::Vector parameters() { return parameters_.view(); }
  kernels::Vector gradients() { return gradients_.view(); }
  kernels::Vector first_moments() { return first_moments_.view(); }
  kernels::Vector second_moments() { return second_moments_.view(); }
  /// Has gradients add up in sums that do not depend on the order of their terms, so that they do not depend on how
  /// tokens came into microbatches. The device's memory is the host's.
  void hold_exact_sums();
  bool has_exact_sums() const { return !high_.empty(); }
  /// Where what that matrix of gradients shows adds up.
  kernels::ExactSums sums_of(kernels::Matrix gradient);
  /// Of layers [first, last), a run that is here: all their high sums, then all low ones.
  std::vector<double> sums(planner::LayerRange layers) const;
  void set_sums(planner::LayerRange layers, std::span<const double> sums);
  /// Gradients are what their sums are by now, where any were added or set; these begin anew.
  void settle_sums();
  /// Once all that was called has ended.
  std::vector<float> parameters_on_host() const { return parameters_.on_host(); }
  /// What the next step depends on, as a checkpoint keeps it.
  struct State {
    std::vector<float> parameters, first_moments, second_moments;
  };
  State state_on_host() const { return {parameters_.on_host(), first_moments_.on_host(), second_moments_.on_host()}; }
  /// Takes the state of another adapter of the same shape and layers.
  void restore(const State& state);

 private:
  const ParameterShape* find(Role role, costmodel::Module module, std::int64_t& offset) const;
  kernels::Matrix view(Part part, std::int32_t layer, std::int64_t offset, std::int64_t rows, std::int64_t columns);
  void draw_parameters(std::uint64_t seed);
  void draw_random_matrices(std::uint64_t seed);
  void draw_places(std::uint64_t seed);

  costmodel::BackboneShape backbone_;
  costmodel::AdapterShape shape_;
  HeldLayers layers_;
  std::vector<ParameterShape> table_;
  std::int64_t layer_numbers_ = 0;
  DeviceArray<float> parameters_, gradients_, first_moments_, second_moments_;
  costmodel::ModuleShape largest_;  // of the targets
  DeviceArray<float> random_a_, random_b_;
  std::map<std::pair<std::int32_t, costmodel::Module>, Places> places_;
  std::map<std::pair<std::int32_t, costmodel::Module>, Norms> norms_;
  std::int64_t version_ = 0;
  std::vector<double> high_, low_;     // exact sums of gradients; empty: none are held
  bool summed_ = false;                // since they were settled
  kernels::Device* device_ = nullptr;  // that it lies on
};

}  // namespace braid::exec
