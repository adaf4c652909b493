#include "sim/cluster/usage.h"

#include <algorithm>

namespace braid::sim {

UsageMeter::UsageMeter(double first_seconds, double bin_seconds) {
  usage_.bin_seconds = bin_seconds;
  usage_.first_seconds = usage_.last_seconds = first_seconds;
}

void UsageMeter::add(double to, double gpus, double running, double waiting, double tokens) {
  const double from = usage_.last_seconds, all = to - from;
  for (double at = from; at < to;) {
    const auto place = static_cast<std::size_t>((at - usage_.first_seconds) / usage_.bin_seconds);
    if (usage_.bins.size() <= place) usage_.bins.resize(place + 1);
    const double bin_end = usage_.first_seconds + static_cast<double>(place + 1) * usage_.bin_seconds;
    // Where rounding leaves no way forward the rest goes here.
    const double end = bin_end > at ? std::min(to, bin_end) : to;
    Usage::Bin& bin = usage_.bins[place];
    const double span = end - at;
    bin.gpus += gpus * span;
    bin.running += running * span;
    bin.waiting += waiting * span;
    bin.tokens += tokens * (span / all);
    at = end;
  }
  usage_.last_seconds = to;
}

Usage UsageMeter::finish() {
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
