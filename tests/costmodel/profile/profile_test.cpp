#include "costmodel/profile/profile.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "costmodel/profile/cost_model.h"
#include "support.h"

namespace braid::costmodel {
namespace {

Profile full_profile() {
  Profile profile;
  profile.machine = "a \"fast\" machine — 2 cores";
  profile.versions = {"oneDNN 2.6.0", "braid 0.1.0"};
  profile.threads = 2;
  profile.corunning_ranks = 4;
  profile.peak_flops = 123456789012.345;
  profile.memory_bytes = 7'000'000'001;
  profile.runtime_bytes = 8'000'003;
  profile.head_runtime_bytes = 900'001;
  profile.pass_skew = 1.0175;
  profile.reference_pass_seconds = 0.0123;
  profile.measured_at = "2024-05-06T07:08:09Z";
  const std::vector<double> awkward = {0.1, 1e-300, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(),
                                       0.0, 1e22,   3.0};
  for (int op = 0; op < kOperatorCount; ++op) {
    for (const Pass pass : {Pass::forward, Pass::backward, Pass::parameters}) {
      ProfileEntry entry;
      entry.op = static_cast<Operator>(op);
      entry.pass = pass;
      entry.dtype = op % 2 == 0 ? "f32" : "bf16";
      entry.tp = 1 + op % 3;
      for (std::size_t i = 0; i < shape_size(entry.op).most; ++i) entry.shape[i] = 100 + static_cast<std::int64_t>(i);
      entry.tokens = 64 * op + 1;
      entry.context = std::max(op, 1);
      entry.prefix = entry.op == Operator::attention ? entry.context - 1 : 0;
      entry.seconds = awkward[static_cast<std::size_t>(op) % awkward.size()];
      entry.spread = entry.seconds / 7;
      entry.count = 20;
      entry.source = op % 2 == 0 ? "measured" : "derived from the datasheet";
      profile.entries.push_back(entry);
    }
  }
  return profile;
}

Profile parsed(const std::string& text) {
  return profile_from(parse_json(text, "p.json"));
}

/// The JSON of a profile with one entry, with `from` in it replaced.
std::string text_with(const std::string& from, const std::string& to) {
  Profile profile;
  profile.machine = "m";
  profile.entries.push_back({Operator::linear, Pass::forward, "f32", 1, {64, 128}, 256, 0, 0, 0.5, 0.1, 9, "measured"});
  std::string text = to_json(profile);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Profile, RoundTripsToTheByte) {
  for (const Profile& profile : {full_profile(), Profile()}) {
    const std::string text = to_json(profile);
    EXPECT_EQ(to_json(parsed(text)), text);
  }
}

TEST(Profile, WhatWasMeasuredOnCpusIsHeldBesideEveryItem) {
  Profile profile = full_profile();
  const Storage storage = profile.storage();
  EXPECT_EQ(context_bytes({2, true, false}, storage), profile.runtime_bytes);
  EXPECT_EQ(context_bytes({2, false, true}, storage), profile.runtime_bytes + profile.head_runtime_bytes);
  EXPECT_EQ(analytic_profile("h100", DataType::bf16).storage(), gpu_storage(DataType::bf16));
}

TEST(Profile, EveryFieldComesBack) {
  const Profile profile = full_profile();
  const TestFolder folder;
  const Profile back = read_profile(folder.write("p.json", to_json(profile)));
  EXPECT_EQ(back.machine, profile.machine);
  EXPECT_EQ(back.versions, profile.versions);
  EXPECT_EQ(back.threads, profile.threads);
  EXPECT_EQ(back.corunning_ranks, profile.corunning_ranks);
  EXPECT_EQ(back.peak_flops, profile.peak_flops);
  EXPECT_EQ(back.memory_bytes, profile.memory_bytes);
  EXPECT_EQ(back.runtime_bytes, profile.runtime_bytes);
  EXPECT_EQ(back.head_runtime_bytes, profile.head_runtime_bytes);
  EXPECT_EQ(back.pass_skew, profile.pass_skew);
  EXPECT_EQ(back.reference_pass_seconds, profile.reference_pass_seconds);
  EXPECT_EQ(back.measured_at, profile.measured_at);
  ASSERT_EQ(back.entries.size(), profile.entries.size());
  for (std::size_t i = 0; i < back.entries.size(); ++i) {
    const ProfileEntry &a = back.entries[i], &b = profile.entries[i];
    EXPECT_EQ(std::tie(a.op, a.pass, a.dtype, a.tp, a.shape, a.tokens, a.context, a.prefix, a.seconds, a.spread,
                       a.count, a.source),
              std::tie(b.op, b.pass, b.dtype, b.tp, b.shape, b.tokens, b.context, b.prefix, b.seconds, b.spread,
                       b.count, b.source));
  }
}

TEST(Profile, OfAGpuHowItRunsComesBack) {
  Profile profile = analytic_profile("a100-80", DataType::f16);
  profile.launch_seconds = 4.25e-6;
  profile.exposed_launch_seconds = 24.5e-6;
  profile.overlap_slowdown = 1.375;
  profile.clock = 0.75;
  profile.recomputes = profile.loss_in_place = true;
  profile.attention = AttentionKind::eager;
  const TestFolder folder;
  const Profile back = read_profile(folder.write("p.json", to_json(profile)));
  EXPECT_EQ(back.device, "a100-80");
  EXPECT_EQ(back.dtype, DataType::f16);
  EXPECT_EQ(back.launch_seconds, profile.launch_seconds);
  EXPECT_EQ(back.exposed_launch_seconds, profile.exposed_launch_seconds);
  EXPECT_EQ(back.overlap_slowdown, profile.overlap_slowdown);
  EXPECT_EQ(CostModel(back).overlap_slowdown(), 1.375);
  EXPECT_EQ(CostModel(analytic_profile("a40", DataType::bf16)).overlap_slowdown(), 84.0 / 76);
  EXPECT_EQ(back.clock, profile.clock);
  EXPECT_TRUE(back.recomputes);
  EXPECT_TRUE(back.storage().loss_in_place);
  EXPECT_EQ(back.storage().attention, AttentionKind::eager);
  EXPECT_EQ(to_json(back), to_json(profile));
  EXPECT_EQ(describe(back),
            "a100-80, by its datasheet, at 0.75 of its clock, eager attention, layers recomputed, the loss in place, "
            "24.5 us exposed a launch, 1.38 times as long beside a collective");
  EXPECT_EQ(describe(analytic_profile("a40", DataType::bf16)), "a40, by its datasheet");
}

TEST(Profile, OneEntryALine) {
  const std::string text = to_json(full_profile());
  const auto lines = std::count(text.begin(), text.end(), '\n');
  Profile shorter = full_profile();
  shorter.entries.pop_back();
  const std::string less = to_json(shorter);
  EXPECT_EQ(lines - std::count(less.begin(), less.end(), '\n'), 1);
}

TEST(Profile, WhatIsNotAProfileIsRefusedWithItsLine) {
  const auto refused = [](const std::string& from, const std::string& to, const auto&... parts) {
    expect_error([&] { parsed(text_with(from, to)); }, "p.json:", parts...);
  };
  refused("\"format\": 1", "\"format\": 2", "p.json:2: unknown format; this build reads format 1");
  refused("\"format\": 1,", "", "'format' is missing");
  refused("\"linear\"", "\"gemm\"", "p.json:10: unknown operator 'gemm'; known: ", "lora_dropout");
  refused("\"forward\"", "\"sideways\"", "unknown pass 'sideways'; known: ");
  refused("[64,128]", "[1,2,3,4,5]", "the shape of 'linear' has 5 numbers; give 2");
  refused("[64,128]", "[]", "the shape of 'linear' has 0 numbers; give 2");
  refused("\"f32\"", "\"fp32\"", "unknown data type 'fp32'");
  refused("[64,128]", "[0,1]", "'shape' is '0'");
  refused("[64,128]", "64", "'shape' is '64'; give a list");
  refused("\"seconds\":0.5", "\"seconds\":-0.5", "'seconds' is '-0.5'; give seconds >= 0");
  refused("\"seconds\":0.5,", "", "'seconds' is missing");
  refused("\"tokens\":256", "\"tokens\":-1", "'tokens' is '-1'");
  refused("\"threads\": 1", "\"threads\": 0", "'threads' is '0'");
  refused(
      "\"linear\",\"pass\":\"forward\",\"dtype\":\"f32\",\"tp\":1,\"shape\":[64,128],\"tokens\":256,\"context\":0,"
      "\"prefix\":0",
      R"("attention","pass":"forward","dtype":"f32","tp":1,"shape":[4,2,16],"tokens":64,"context":64,"prefix":64)",
      "attention of 64 tokens in contexts of 64 after prefixes of 64; give 1 <= context - prefix <= tokens");
  refused("\"machine\": \"m\",", "", "'machine' is missing");
  expect_error([] { parsed("[]"); }, "p.json:1: a list stands where keys are expected");
  expect_error([] { read_profile("/nowhere/p.json"); }, "/nowhere/p.json: cannot be read");
}

}  // namespace
}  // namespace braid::costmodel
