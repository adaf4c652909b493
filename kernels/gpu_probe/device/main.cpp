#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>

#include "kernels/gpu_probe/arguments.h"
#include "kernels/gpu_probe/device/probe.h"
#include "kernels/gpu_probe/output_file.h"

namespace braid::gpu_probe {
namespace {

using Clock = std::chrono::steady_clock;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// In the order of `points`; fewer of them when `seconds` run out.
std::vector<Measurement> measure_all(Probe& probe, const std::vector<Point>& points, double seconds) {
  const Clock::time_point start = Clock::now();
  const std::size_t least = least_measured(points);
  std::vector<std::optional<Summary>> times(points.size());
  std::size_t done = 0;
  for (const std::size_t place : measuring_order(points)) {
    if (done >= least && std::chrono::duration<double>(Clock::now() - start).count() > seconds) break;
    times[place] = probe.measure(points[place]);
    ++done;
  }
  if (done < points.size()) {
    std::fprintf(stderr, "%zu of %zu points measured in %g seconds, thinned evenly; give more --seconds for all\n",
                 done, points.size(), seconds);
  }
  std::vector<Measurement> measurements;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (times[i]) measurements.push_back({points[i], *times[i]});
  }
  return measurements;
}

double best_rate(const std::vector<Measurement>& measurements) {
  double best = 0;
  for (const auto& [point, time] : measurements) {
    if (point.op == "linear") best = std::max(best, product_flops(point) / time.seconds);
  }
  return best;
}

void print_summary(const MeasuredProfile& profile, const std::string& file) {
  double bandwidth = 0, start = 0, kernel = 0;
  for (const auto& [point, time] : profile.measurements) {
    // The largest copy is far larger than any cache.
    if (point.op == "copy") bandwidth = static_cast<double>(point.tokens) / time.seconds;
    if (point.op == "launch") start = time.seconds;
    if (point.op == "empty_kernel") kernel = time.seconds;
  }
  std::printf("%s\n", profile.machine.c_str());
  std::printf("best product      %.1f TFLOP/s\nlargest copy      %.0f GB/s\n", profile.peak_flops / 1e12,
              bandwidth / 1e9);
  std::printf("starting a kernel %.2f us of the host, %.2f us of the GPU\n", start * 1e6, kernel * 1e6);
  std::printf("%zu entries, written to %s\n", profile.measurements.size(), file.c_str());
}

int run(const std::vector<std::string>& words) {
  const Arguments arguments = parse_arguments(words);
  const std::vector<Point> points = all_points();
  if (arguments.help || arguments.list) {
    std::fputs((arguments.help ? usage() : listing(points)).c_str(), stdout);
    return 0;
  }
  check_output(arguments.out, arguments.overwrite);
  Probe probe(points);
  probe.check_results();
  MeasuredProfile profile = probe.describe();
  profile.measured_at = utc_now();
  profile.measurements = measure_all(probe, points, arguments.seconds);
  profile.peak_flops = best_rate(profile.measurements);
  write_output(arguments.out, to_json(profile));
  print_summary(profile, arguments.out);
  if (probe.starved_samples() > 0) {
    std::fprintf(stderr, "%lld samples waited for the host, so small times may be too long; leave it a core\n",
                 static_cast<long long>(probe.starved_samples()));
  }
  return 0;
}

int fail(const char* message, int status) {
  std::fprintf(stderr, "error: %s\n", message);
  return status;
}

}  // namespace
}  // namespace braid::gpu_probe

int main(int argc, char** argv) {
  using namespace braid::gpu_probe;
  try {
    return run({argv + 1, argv + argc});
  } catch (const UsageError& bad_arguments) {
    return fail(bad_arguments.what(), 2);
  } catch (const std::exception& failure) {
    return fail(failure.what(), 1);
  }
}
