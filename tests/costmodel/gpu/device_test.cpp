#include "costmodel/gpu/device.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/csv.h"
#include "support.h"

namespace braid::costmodel {
namespace {

TEST(Device, EveryRowOfTheReferencesDatasheetsIsBuiltIn) {
  const std::filesystem::path table = std::filesystem::path(BRAID_SOURCE_DIR) / "../shared/reference/gpus.csv";
  if (!std::filesystem::exists(table)) GTEST_SKIP() << table << " is not here";
  CsvReader rows(table);
  ASSERT_TRUE(rows.next());
  std::map<std::string, std::size_t, std::less<>> columns;
  for (std::size_t column = 0; column < rows.fields().size(); ++column)
    columns[std::string(rows.fields()[column])] = column;
  std::vector<std::string> names;
  while (rows.next()) {
    const Device& device = device_of(rows.fields()[0]);
    names.emplace_back(device.name);
    const auto number = [&](const char* what) { return rows.number(columns.at(what), what); };
    const bool has_bf16 = !rows.fields()[columns.at("bf16_dense_tflops")].empty();
    EXPECT_DOUBLE_EQ(device.bf16_flops, 1e12 * number(has_bf16 ? "bf16_dense_tflops" : "fp16_dense_tflops"))
        << device.name;
    EXPECT_DOUBLE_EQ(device.f32_flops, 1e12 * number("fp32_tflops")) << device.name;
    EXPECT_EQ(static_cast<double>(device.memory_bytes), 1e9 * number("memory_gb")) << device.name;
    EXPECT_DOUBLE_EQ(device.memory_bandwidth, 1e9 * number("memory_gb_per_s")) << device.name;
    EXPECT_EQ(static_cast<double>(device.multiprocessors), number("sms")) << device.name;
    EXPECT_EQ(static_cast<double>(device.l2_bytes), 1e6 * number("l2_mb")) << device.name;
    EXPECT_DOUBLE_EQ(device.nvlink_bandwidth, 1e9 * number("nvlink_total_gb_per_s") / 2) << device.name;
    EXPECT_DOUBLE_EQ(device.power_watts, number("tdp_w")) << device.name;
  }
  std::vector<std::string> known = device_names();
  std::sort(names.begin(), names.end());
  std::sort(known.begin(), known.end());
  EXPECT_EQ(names, known);
}

}  // namespace
}  // namespace braid::costmodel
