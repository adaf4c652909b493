#include "costmodel/profile/profile_fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/statistics.h"
#include "costmodel/profile/cost_model.h"
#include "support.h"

namespace braid::costmodel {
namespace {

/// A GPU that is another than its generation is.
Profile planted_gpu() {
  Profile profile = analytic_profile("h100", DataType::bf16);
  GemmCoefficients products = gemm_coefficients(Generation::hopper);
  products.rate_efficiency = 0.6;
  products.launch_seconds = 4e-6;
  products.bandwidth_efficiency = 0.7;
  profile.products = products;
  profile.copies = StreamCoefficients{3e-6, 1.1, 1.6};
  return profile;
}

/// What is measured on it: products of some matrices and copies, each off by a random factor.
Profile measured_on(const Profile& planted, double noise) {
  const Roofline truth(planted);
  Profile profile = analytic_profile("h100", DataType::bf16);
  RandomStream random(5);
  const auto add = [&](Operator op, Pass pass, OperatorShape shape, std::int64_t tokens) {
    ProfileEntry entry;
    entry.op = op;
    entry.pass = pass;
    entry.dtype = "bf16";
    entry.shape = shape;
    entry.tokens = tokens;
    entry.seconds = truth.seconds({op, pass, shape, tokens}) * (1 + noise * (2 * random.next_uniform() - 1));
    entry.count = 9;
    entry.source = "measured";
    profile.entries.push_back(entry);
  };
  for (const std::int64_t tokens : {64, 128, 256, 512, 768, 1024, 2048, 4096}) {
    for (const auto& [in, out] : {std::pair(4096, 12288), std::pair(4096, 4096), std::pair(4096, 22016),
                                  std::pair(11008, 4096), std::pair(4096, 16), std::pair(4160, 4096)})
      add(Operator::linear, Pass::forward, {in, out}, tokens);
    add(Operator::linear, Pass::backward, {4096, 12288}, tokens);
    add(Operator::linear, Pass::parameters, {4096, 32}, tokens);
  }
  for (std::int64_t bytes = 1 << 12; bytes <= 1 << 30; bytes *= 2) add(Operator::copy, Pass::forward, {}, bytes);
  return profile;
}

TEST(ProfileFit, RecoversAPlantedGpuUnderNoise) {
  const Profile planted = planted_gpu();
  const ProfileFit fit = fit_profile(measured_on(planted, 0.03));
  EXPECT_LT(median(fit.fitted), 0.03);
  EXPECT_GT(median(fit.generation), 0.1);
  EXPECT_EQ(fit.held_out.size(), fit.fitted.size());
  EXPECT_LT(median(fit.held_out), 0.08);
  EXPECT_LT(median(fit.copies), 0.03);

  // Work that was never measured: another backbone, with adapters, and kernels that move numbers.
  const Roofline truth(planted), fitted(fit.profile), before(analytic_profile("h100", DataType::bf16));
  for (const std::int64_t tokens : {96, 640, 3000}) {
    for (const OperatorCall& call : {OperatorCall{Operator::linear, Pass::forward, {5120, 13824}, tokens},
                                     OperatorCall{Operator::linear, Pass::backward, {5120, 5120}, tokens},
                                     OperatorCall{Operator::lora, Pass::forward, {5120, 15360, 16, 3}, tokens},
                                     OperatorCall{Operator::residual, Pass::forward, {5120}, tokens}}) {
      const double expected = truth.seconds(call);
      EXPECT_NEAR(fitted.seconds(call) / expected, 1, 0.08) << name(call.op) << " of " << tokens;
      EXPECT_LT(std::abs(fitted.seconds(call) - expected), std::abs(before.seconds(call) - expected));
    }
  }
}

/// As braid itself measures one, whose weights are held as they are multiplied.
TEST(ProfileFit, KnowsTheDatasheetOfAGpuByItsName) {
  const Profile named = measured_on(planted_gpu(), 0.03);
  Profile own = named;
  own.device.clear();
  own.machine = "NVIDIA H100 80GB HBM3", own.backend = "cuda", own.dtype = DataType::f32;
  for (ProfileEntry& entry : own.entries) entry.dtype = "f32";
  const Profile fitted = fit_profile(own).profile, expected = fit_profile(named).profile;
  EXPECT_EQ(fitted.device, "h100-sxm");
  EXPECT_EQ(fitted.dtype, DataType::bf16);
  EXPECT_EQ(fitted.backend, "cpu");
  ASSERT_TRUE(fitted.products && expected.products);
  EXPECT_EQ(fitted.products->rate_efficiency, expected.products->rate_efficiency);
  own.machine = "NVIDIA H100 NVL";
  EXPECT_THROW(fit_profile(own), Error);
}

TEST(ProfileFit, WhatWasMeasuredStaysAndComesBackFromAFile) {
  const Profile measured = measured_on(planted_gpu(), 0);
  const ProfileFit fit = fit_profile(measured);
  EXPECT_EQ(fit.profile.entries.size(), measured.entries.size());
  const TestFolder folder;
  const Profile back = read_profile(folder.write("p.json", to_json(fit.profile)));
  EXPECT_EQ(back.products, fit.profile.products);
  EXPECT_EQ(back.copies, fit.profile.copies);
  EXPECT_EQ(to_json(back), to_json(fit.profile));
}

/// Products that adapters' parts joined tell nothing of products; and a datasheet has no second kernels.
TEST(ProfileFit, ProductsOfSecondKernelsAreLeftOut) {
  Profile measured = measured_on(planted_gpu(), 0.03);
  const ProfileFit without = fit_profile(measured);
  measured.device.clear(), measured.machine = "NVIDIA H100 80GB HBM3", measured.backend = "cuda";
  measured.kernels = {{Operator::linear, Pass::forward, {4096, 4096}, 512}};
  for (ProfileEntry& entry : measured.entries)
    if (entry.op == Operator::linear && entry.shape == OperatorShape{4096, 4096} && entry.tokens >= 512)
      entry.seconds *= 3;
  const ProfileFit fit = fit_profile(measured);
  EXPECT_EQ(fit.fitted.size(), without.fitted.size() - 5);
  EXPECT_LT(median(fit.fitted), 0.03);
  EXPECT_TRUE(fit.profile.kernels.empty());
  EXPECT_NO_THROW(profile_from(parse_json(to_json(fit.profile), "fitted.json")));
  measured.kernels = all_of(Operator::linear);
  std::erase_if(measured.entries, [](const ProfileEntry& entry) { return entry.pass == Pass::parameters; });
  EXPECT_THROW(fit_profile(measured), Error);
}

TEST(ProfileFit, CopiesOfTooFewSizesAreLeftOut) {
  const Profile all = measured_on(planted_gpu(), 0);
  for (const auto& [least, most] : {std::pair(std::int64_t{1} << 27, std::int64_t{1} << 30),
                                    std::pair(std::int64_t{1} << 12, std::int64_t{1} << 21)}) {
    Profile some = all;
    std::erase_if(some.entries, [&](const ProfileEntry& entry) {
      return entry.op == Operator::copy && (entry.tokens < least || entry.tokens > most);
    });
    const ProfileFit fit = fit_profile(some);
    EXPECT_FALSE(fit.profile.copies);
    EXPECT_TRUE(fit.profile.products);
  }
}

TEST(ProfileFit, RefusesWhatItCannotLearnFrom) {
  Profile cpu;
  cpu.machine = "a CPU";
  expect_error([&] { fit_profile(cpu); }, "the profile of a CPU is of no GPU with a datasheet");
  expect_error([&] { fit_profile(analytic_profile("a40", DataType::bf16)); }, "0 measured products are too few");
  Profile derived = measured_on(planted_gpu(), 0);
  for (ProfileEntry& entry : derived.entries) entry.source = "derived from the datasheet of h100";
  expect_error([&] { fit_profile(derived); }, "0 measured products are too few");
  Profile clocked = measured_on(planted_gpu(), 0), narrow = clocked, int8 = clocked;
  clocked.clock = 0.5;
  expect_error([&] { fit_profile(clocked); }, "at 0.5 of its clock");
  int8.dtype = DataType::int8;
  expect_error([&] { fit_profile(int8); }, "is of int8");
  for (ProfileEntry& entry : narrow.entries) entry.pass = Pass::forward, entry.shape = {4096, 4096}, entry.tokens = 256;
  expect_error([&] { fit_profile(narrow); }, "of 2 or more sizes each way");
  const TestFolder folder;
  Profile fast = analytic_profile("h100", DataType::bf16);
  fast.products = gemm_coefficients(Generation::hopper);
  fast.products->rate_efficiency = 1.5;
  const auto file = folder.write("p.json", to_json(fast));
  expect_error([&] { read_profile(file); }, "rate_efficiency");
}

}  // namespace
}  // namespace braid::costmodel
