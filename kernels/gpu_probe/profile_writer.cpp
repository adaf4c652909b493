#include "kernels/gpu_probe/profile_writer.h"

#include <array>
#include <charconv>

namespace braid::gpu_probe {
namespace {

/// In the fewest digits that read back as the same number.
std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string quoted(const std::string& text) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string result = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (code < 0x20) {
      result += std::string("\\u00") + kDigits[code / 16] + kDigits[code % 16];
    } else {
      result += letter;
    }
  }
  return result + '"';
}

template <typename List, typename Write>
std::string array(const List& list, const Write& write) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ",") + write(one);
  return "[" + text + "]";
}

std::string entry(const Measurement& measurement) {
  const Point& point = measurement.point;
  const Summary& time = measurement.time;
  const std::string shape = array(point.shape, [](std::int64_t size) { return std::to_string(size); });
  return "{\"op\":" + quoted(point.op) + ",\"pass\":" + quoted(point.pass) +
         ",\"dtype\":\"bf16\",\"tp\":1,\"shape\":" + shape + ",\"tokens\":" + std::to_string(point.tokens) +
         ",\"context\":0,\"seconds\":" + number(time.seconds) + ",\"spread\":" + number(time.spread) +
         ",\"count\":" + std::to_string(time.count) + ",\"source\":\"measured\"}";
}

}  // namespace

std::string to_json(const MeasuredProfile& profile) {
  std::string text = "{\n";
  const auto field = [&](const char* key, const std::string& value) {
    text += "  \"" + std::string(key) + "\": " + value + ",\n";
  };
  field("format", "1");
  field("machine", quoted(profile.machine));
  field("versions", array(profile.versions, quoted));
  field("threads", "1");
  field("corunning_ranks", "1");
  field("peak_flops", number(profile.peak_flops));
  field("memory_bytes", std::to_string(profile.memory_bytes));
  if (!profile.device.empty()) {
    field("device", quoted(profile.device));
    field("dtype", quoted("bf16"));
  }
  text += "  \"entries\": [";
  for (std::size_t i = 0; i < profile.measurements.size(); ++i)
    text += (i == 0 ? "\n    " : ",\n    ") + entry(profile.measurements[i]);
  text += "\n  ],\n";
  return text + "  \"meta\": {\"measured_at\":" + quoted(profile.measured_at) + "}\n}\n";
}

}  // namespace braid::gpu_probe
