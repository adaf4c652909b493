#include "kernels/gpu_probe/profile_writer.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/statistics.h"
#include "costmodel/profile/profile.h"
#include "kernels/gpu_probe/gpu_names.h"
#include "support.h"

namespace braid::gpu_probe {
namespace {

/// Of every size that a finite double can have.
double random_number() {
  const double digits = *rc::gen::inRange(1, 1 << 30);
  return std::ldexp(digits, *rc::gen::inRange(-1100, 900));
}

Measurement random_measurement() {
  Measurement measurement;
  // What the probe measures.
  const auto op =
      *rc::gen::element(costmodel::Operator::linear, costmodel::Operator::copy, costmodel::Operator::residual,
                        costmodel::Operator::launch, costmodel::Operator::empty_kernel);
  measurement.point.op = costmodel::name(op);
  measurement.point.pass = costmodel::name(static_cast<costmodel::Pass>(*rc::gen::inRange(0, 3)));
  for (std::size_t i = costmodel::shape_size(op).most; i > 0; --i)
    measurement.point.shape.push_back(*rc::gen::inRange(1, 1 << 30));
  measurement.point.tokens = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
  measurement.time = {random_number(), random_number(), *rc::gen::inRange(1, 100)};
  return measurement;
}

costmodel::Profile read_back(const MeasuredProfile& profile) {
  const TestFolder folder;
  return costmodel::read_profile(folder.write("p.json", to_json(profile)));
}

RC_GTEST_PROP(ProfileWriter, TheCostModelReadsBackWhatWasMeasured, ()) {
  MeasuredProfile profile;
  profile.machine = "a \"fast\" GPU\\ —\t2 of them";
  profile.versions = {"CUDA runtime 13.0", "cuBLASLt 13.1.0"};
  profile.peak_flops = random_number();
  profile.memory_bytes = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40);
  profile.device = *rc::gen::element<std::string>("", "h200-sxm", "a40");
  profile.measured_at = "2024-05-06T07:08:09Z";
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) profile.measurements.push_back(random_measurement());

  const costmodel::Profile back = read_back(profile);
  RC_ASSERT(back.machine == profile.machine);
  RC_ASSERT(back.versions == profile.versions);
  RC_ASSERT(back.threads == 1);
  RC_ASSERT(back.corunning_ranks == 1);
  RC_ASSERT(back.peak_flops == profile.peak_flops);
  RC_ASSERT(back.memory_bytes == profile.memory_bytes);
  RC_ASSERT(back.device == profile.device);
  RC_ASSERT(back.dtype == (profile.device.empty() ? costmodel::DataType::f32 : costmodel::DataType::bf16));
  RC_ASSERT(back.interconnect == costmodel::Interconnect{});
  RC_ASSERT(back.measured_at == profile.measured_at);
  RC_ASSERT(back.entries.size() == profile.measurements.size());
  for (std::size_t i = 0; i < back.entries.size(); ++i) {
    const costmodel::ProfileEntry& entry = back.entries[i];
    const auto& [point, time] = profile.measurements[i];
    costmodel::OperatorShape shape{};
    std::copy(point.shape.begin(), point.shape.end(), shape.begin());
    RC_ASSERT(costmodel::name(entry.op) == point.op);
    RC_ASSERT(costmodel::name(entry.pass) == point.pass);
    RC_ASSERT(entry.shape == shape);
    RC_ASSERT(entry.tokens == point.tokens);
    RC_ASSERT(entry.seconds == time.seconds);
    RC_ASSERT(entry.spread == time.spread);
    RC_ASSERT(entry.count == time.count);
    RC_ASSERT(entry.dtype == "bf16");
    RC_ASSERT(entry.tp == 1);
    RC_ASSERT(entry.context == 0);
    RC_ASSERT(entry.source == "measured");
  }
}

TEST(ProfileWriter, OneEntryALine) {
  MeasuredProfile profile;
  const auto lines = [&] {
    const std::string text = to_json(profile);
    return std::count(text.begin(), text.end(), '\n');
  };
  profile.measurements.resize(3);
  const auto three = lines();
  profile.measurements.resize(7);
  EXPECT_EQ(lines() - three, 4);
}

RC_GTEST_PROP(Summary, SaysWhatBraidsOwnStatisticsSay, ()) {
  std::vector<double> samples;
  for (int i = *rc::gen::inRange(1, 15); i > 0; --i) samples.push_back(*rc::gen::inRange(1, 1000));
  const Summary summary = summarize(samples);
  RC_ASSERT(summary.seconds == median(samples));
  RC_ASSERT(summary.spread == (quantile(samples, 0.75) - quantile(samples, 0.25)) / median(samples));
  RC_ASSERT(summary.count == static_cast<std::int64_t>(samples.size()));
}

TEST(GpuNames, TheCostModelHasADatasheetOfEach) {
  EXPECT_GE(known_gpus().size(), 8U);
  for (const std::string& gpu : known_gpus())
    EXPECT_EQ(costmodel::device_of(device_of_gpu(gpu)).name, device_of_gpu(gpu));
  EXPECT_EQ(device_of_gpu("NVIDIA H200"), "h200-sxm");
  EXPECT_EQ(device_of_gpu("NVIDIA H100 80GB HBM3"), "h100-sxm");
  EXPECT_EQ(device_of_gpu("NVIDIA H100 PCIe"), "");
}

}  // namespace
}  // namespace braid::gpu_probe
