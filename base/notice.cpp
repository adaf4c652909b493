#include "base/notice.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/terminal.h"
#include "base/utf8.h"

namespace braid {
namespace {

struct Notices {
  std::mutex mutex;
  std::set<std::string> told;
  bool silent = false;
};

Notices& notices() {
  static Notices all;
  return all;
}

}  // namespace

void notice(const std::string& what) {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  const std::string line = message_line(what);
  if (all.silent || !all.told.insert(line).second) return;
  std::fputs(fmt::format("{} {}\n", toned("note:", Tone::note, stderr), line).c_str(), stderr);
  std::fflush(stderr);
}

std::string told_notices() {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  return fmt::format("{}", fmt::join(all.told, "\n"));
}

void take_for_told(const std::string& told) {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  std::istringstream lines(told);
  for (std::string line; std::getline(lines, line);) all.told.insert(line);
}

void silence_notices() {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  all.silent = true;
}

}  // namespace braid
