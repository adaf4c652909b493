#include "costmodel/profile_fit.h"

#include <cmath>
#include <set>
#include <utility>

#include "base/error.h"
#include "costmodel/gemm_fit.h"

namespace braid::costmodel {
namespace {

bool is_measured(const ProfileEntry& entry, const Profile& profile) {
  return !entry.source.starts_with(kDerived) && entry.dtype == name(profile.dtype) && entry.seconds > 0;
}

/// The product that an entry of a frozen layer ran.
GemmShape product_of(const ProfileEntry& entry) {
  const std::int64_t in = entry.shape[0], out = entry.shape[1];
  if (entry.pass == Pass::forward) return {entry.tokens, in, out};
  if (entry.pass == Pass::backward) return {entry.tokens, out, in};
  return {in, entry.tokens, out};
}

std::vector<GemmPoint> products_of(const Profile& profile) {
  std::vector<GemmPoint> points;
  for (const ProfileEntry& entry : profile.entries) {
    if (entry.op == Operator::linear && is_measured(entry, profile))
      points.push_back({product_of(entry), entry.seconds});
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

/// Every other matrix W, so that a half knows none of the other's.
std::vector<GemmPoint> half_of(std::span<const GemmPoint> points, bool second) {
  std::set<std::pair<std::int64_t, std::int64_t>> matrices;
  for (const GemmPoint& point : points) matrices.emplace(point.shape.in, point.shape.out);
  std::vector<GemmPoint> half;
  for (const GemmPoint& point : points) {
    const auto place = std::distance(matrices.begin(), matrices.find({point.shape.in, point.shape.out}));
    if ((place % 2 == 1) == second) half.push_back(point);
  }
  return half;
}

}  // namespace

ProfileFit fit_profile(const Profile& profile) {
  if (profile.device.empty())
    throw error("the profile of {} is of no GPU with a datasheet: nothing departs from it", profile.machine);
  const Device& device = device_of(profile.device);
  const DataType type = activation_type(profile.dtype);
  const std::vector<GemmPoint> products = products_of(profile);
  ProfileFit fit{profile, {}, {}, {}, {}};
  fit.profile.products = fit_gemm(products, device, type);
  fit.fitted = errors_of(products, device, type, *fit.profile.products);
  fit.generation = errors_of(products, device, type, gemm_coefficients(device.generation));
  const std::vector<GemmPoint> first = half_of(products, false), second = half_of(products, true);
  for (const auto& [learned, other] : {std::pair(&first, &second), std::pair(&second, &first)}) {
    if (learned->size() < kFewestProducts) continue;
    const std::vector<double> errors = errors_of(*other, device, type, fit_gemm(*learned, device, type));
    fit.held_out.insert(fit.held_out.end(), errors.begin(), errors.end());
  }

  std::vector<StreamPoint> copies;
  for (const ProfileEntry& entry : profile.entries) {
    if (entry.op == Operator::copy && is_measured(entry, profile))
      copies.push_back({static_cast<double>(entry.tokens), entry.seconds});
  }
  // A launch, the cache and the memory want a few sizes each.
  constexpr std::size_t kFewestCopies = 6;
  if (copies.size() < kFewestCopies) return fit;
  fit.profile.copies = fit_stream(copies, device);
  for (const StreamPoint& point : copies)
    fit.copies.push_back(std::abs(stream_seconds(device, *fit.profile.copies, point.bytes) / point.seconds - 1));
  return fit;
}

}  // namespace braid::costmodel
