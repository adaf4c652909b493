#include "kernels/gpu_probe/arguments.h"

#include <charconv>

#include "kernels/gpu_probe/errors.h"

namespace braid::gpu_probe {
namespace {

double seconds_of(const std::string& text) {
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [stop, reason] = std::from_chars(text.data(), end, seconds);
  constexpr double kMost = 86400;
  if (reason != std::errc() || stop != end || !(seconds > 0 && seconds <= kMost))
    throw UsageError("--seconds '" + text + "' is no time to measure in; give seconds > 0, at most a day of them");
  return seconds;
}

}  // namespace

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    const auto value = [&] {
      if (equals != std::string::npos) return words[i].substr(equals + 1);
      if (i + 1 == words.size()) throw UsageError(flag + " has no value; see --help");
      return words[++i];
    };
    if (flag == "--out") {
      arguments.out = value();
    } else if (flag == "--seconds") {
      arguments.seconds = seconds_of(value());
    } else if (words[i] == "--overwrite") {
      arguments.overwrite = true;
    } else if (words[i] == "--list") {
      arguments.list = true;
    } else if (words[i] == "--help" || words[i] == "-h") {
      arguments.help = true;
    } else {
      throw UsageError("unknown argument '" + words[i] + "'; see --help");
    }
  }
  if (arguments.out.empty() && !arguments.list && !arguments.help)
    throw UsageError("--out is missing; give a file for the profile");
  return arguments;
}

std::string usage() {
  return "gpu-probe measures what braid's cost model rests on, on this machine's first GPU, and writes a profile.\n\n"
         "usage: gpu-probe --out FILE [options]\n\n"
         "  --out FILE    the profile\n"
         "  --overwrite   replace FILE\n"
         "  --seconds N   stop measuring after N seconds, sizes thinned evenly (110); the smallest and largest size\n"
         "                of everything are measured whatever N is\n"
         "  --list        print what would be measured; needs no GPU\n"
         "  --help        this text\n\n"
         "CUDA_VISIBLE_DEVICES picks another GPU. Let nothing else run on it meanwhile.\n";
}

}  // namespace braid::gpu_probe
