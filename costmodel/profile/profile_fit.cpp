#include "costmodel/profile/profile_fit.h"

#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "costmodel/profile/gemm_fit.h"

namespace braid::costmodel {
namespace {

bool is_measured(const ProfileEntry& entry, const Profile& profile) {
  return !entry.source.starts_with(kDerived) && entry.dtype == name(profile.dtype) && entry.seconds > 0;
}

/// Products that adapters' parts joined are more than products.
bool is_joined(const ProfileEntry& entry, const Profile& profile) {
  return takes_second_kernel(profile.kernels, entry.op, entry.pass, entry.shape, entry.tokens);
}

/// The product that an entry of a frozen layer ran.
GemmShape product_of(const ProfileEntry& entry) {
  const std::int64_t in = entry.shape[0], out = entry.shape[1];
  if (entry.pass == Pass::forward) return {entry.tokens, in, out};
  if (entry.pass == Pass::backward) return {entry.tokens, out, in};
  return {in, entry.tokens, out};
}

/// A measured product, and of which layer: the weights that both of its directions read.
struct LayerPoint {
  OperatorShape layer{};
  GemmPoint point;
};

std::vector<LayerPoint> products_of(const Profile& profile) {
  std::vector<LayerPoint> points;
  for (const ProfileEntry& entry : profile.entries) {
    if (entry.op == Operator::linear && is_measured(entry, profile) && !is_joined(entry, profile))
      points.push_back({entry.shape, {product_of(entry), entry.seconds}});
  }
  return points;
}

std::vector<double> errors_of(std::span<const GemmPoint> points, const Device& device, DataType type,
                              const GemmCoefficients& coefficients) {
  const GemmModel model(device, type, coefficients);
  std::vector<double> errors;
  for (const GemmPoint& point : points) errors.push_back(std::abs(model.seconds(point.shape) / point.seconds - 1));
  return errors;
}

/// Of every other layer, so that a half knows none of the other's.
std::vector<GemmPoint> half_of(std::span<const LayerPoint> points, bool second) {
  std::set<OperatorShape> layers;
  for (const LayerPoint& point : points) layers.insert(point.layer);
  std::vector<GemmPoint> half;
  for (const LayerPoint& point : points) {
    if ((std::distance(layers.begin(), layers.find(point.layer)) % 2 == 1) == second) half.push_back(point.point);
  }
  return half;
}

/// A launch, the cache and the memory are told apart by two sizes and more on either side.
bool tell_all(std::span<const StreamPoint> copies, const Device& device) {
  std::set<double> cached, beyond;
  for (const StreamPoint& copy : copies)
    (copy.bytes <= static_cast<double>(device.l2_bytes) ? cached : beyond).insert(copy.bytes);
  return cached.size() >= kFewestSizes && beyond.size() >= kFewestSizes;
}

/// What braid's own measured of a GPU that has a datasheet, which stands in from here on for what has no entry.
Profile of_known_gpu(Profile profile) {
  const Device* device = find_device_of_machine(profile.machine);
  if (!profile.device.empty() || !device || !profile.on_gpus()) return profile;
  profile.device = device->name;
  // What is not compressed is held as it is multiplied.
  const bool rounded = profile.computes_in_bf16() && profile.dtype == DataType::f32;
  const DataType held = rounded ? DataType::bf16 : profile.dtype;
  for (ProfileEntry& entry : profile.entries)
    if (entry.dtype == name(profile.dtype)) entry.dtype = name(held);
  profile.dtype = held;
  profile.backend = Profile().backend;
  return profile;
}

}  // namespace

ProfileFit fit_profile(const Profile& measured) {
  const Profile profile = of_known_gpu(measured);
  if (profile.device.empty())
    throw error("the profile of {} is of no GPU with a datasheet: nothing departs from it", profile.machine);
  if (profile.clock != 1)
    throw error("the profile of {} is of a GPU at {} of its clock; fit one at the full clock", profile.machine,
                profile.clock);
  if (profile.dtype == DataType::int8)
    throw error("the profile of {} is of int8, whose layers are many kernels; fit one of 16 bits", profile.machine);
  const Device& device = device_of(profile.device);
  const DataType type = profile.dtype;
  const std::vector<LayerPoint> of_layers = products_of(profile);
  if (of_layers.empty() && !measured.kernels.empty())
    throw error("the products of {} were all measured with adapters' parts in them; measure with --kernels plain",
                measured.machine);
  std::vector<GemmPoint> products;
  for (const LayerPoint& point : of_layers) products.push_back(point.point);
  ProfileFit fit{profile, {}, {}, {}, {}};
  fit.profile.kernels.clear();  // of the GPU at hand, not of its datasheet
  fit.profile.products = fit_gemm(products, device, type);
  fit.fitted = errors_of(products, device, type, *fit.profile.products);
  fit.generation = errors_of(products, device, type, gemm_coefficients(device.generation));
  const std::vector<GemmPoint> first = half_of(of_layers, false), second = half_of(of_layers, true);
  for (const auto& [learned, other] : {std::pair(&first, &second), std::pair(&second, &first)}) {
    if (!tells(*learned)) continue;
    const std::vector<double> errors = errors_of(*other, device, type, fit_gemm(*learned, device, type));
    fit.held_out.insert(fit.held_out.end(), errors.begin(), errors.end());
  }

  std::vector<StreamPoint> copies;
  for (const ProfileEntry& entry : profile.entries) {
    if (entry.op == Operator::copy && is_measured(entry, profile))
      copies.push_back({static_cast<double>(entry.tokens), entry.seconds});
  }
  if (!tell_all(copies, device)) return fit;
  const StreamCoefficients fitted = fit_stream(copies, device);
  if (fitted.cached <= 0 || fitted.beyond_cache <= 0) return fit;
  fit.profile.copies = fitted;
  for (const StreamPoint& point : copies)
    fit.copies.push_back(std::abs(stream_seconds(device, *fit.profile.copies, point.bytes) / point.seconds - 1));
  return fit;
}

}  // namespace braid::costmodel
