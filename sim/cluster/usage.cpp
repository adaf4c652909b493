#include "sim/cluster/usage.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace braid::sim {
namespace {

/// A century of hours.
constexpr std::size_t kMostBins = 876'600;

}  // namespace

UsageMeter::UsageMeter(double first_seconds, double bin_seconds) {
  usage_.bin_seconds = bin_seconds;
  usage_.first_seconds = usage_.last_seconds = first_seconds;
}

void UsageMeter::add(double to, double gpus, double running, double waiting, double tokens) {
  const double from = usage_.last_seconds, all = to - from;
  const auto begin_of = [&](std::size_t bin) {
    return usage_.first_seconds + static_cast<double>(bin) * usage_.bin_seconds;
  };
  const double most = begin_of(kMostBins);
  if (to > most)
    throw error("a run of more than {:.0f} days is not told; are the times in seconds? A horizon ends it sooner",
                (most - usage_.first_seconds) / kDay);
  for (double at = from; at < to;) {
    auto place = static_cast<std::size_t>((at - usage_.first_seconds) / usage_.bin_seconds);
    if (begin_of(place + 1) <= at) ++place;  // rounding put it before its own bin
    if (usage_.bins.size() <= place) usage_.bins.resize(place + 1);
    const double end = std::min(to, begin_of(place + 1)), span = end - at;
    Usage::Bin& bin = usage_.bins[place];
    bin.gpus += gpus * span;
    bin.running += running * span;
    bin.waiting += waiting * span;
    bin.tokens += tokens * (span / all);
    at = end;
  }
  usage_.last_seconds = to;
}

Usage UsageMeter::finish(double end) {
  usage_.last_seconds = std::min(usage_.last_seconds, end);
  const double bins = std::ceil((usage_.last_seconds - usage_.first_seconds) / usage_.bin_seconds);
  usage_.bins.resize(std::min(usage_.bins.size(), static_cast<std::size_t>(std::max(bins, 0.0))));
  for (std::size_t b = 0; b < usage_.bins.size(); ++b) {
    const double begin = usage_.first_seconds + static_cast<double>(b) * usage_.bin_seconds;
    const double span = std::min(usage_.bin_seconds, usage_.last_seconds - begin);
    if (span <= 0) continue;
    usage_.bins[b].gpus /= span;
    usage_.bins[b].running /= span;
    usage_.bins[b].waiting /= span;
  }
  return std::move(usage_);
}

}  // namespace braid::sim
