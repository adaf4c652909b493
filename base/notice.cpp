#include "base/notice.h"

#include <cstdio>
#include <mutex>
#include <set>

#include "base/error.h"

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
  if (all.silent || !all.told.insert(what).second) return;
  std::fputs(fmt::format("note: {}\n", what).c_str(), stderr);
  std::fflush(stderr);
}

void silence_notices() {
  Notices& all = notices();
  const std::lock_guard lock(all.mutex);
  all.silent = true;
}

}  // namespace braid
