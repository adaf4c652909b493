#include "base/terminal.h"

#include <cstdlib>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace braid {
namespace {

using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// The side of a pseudo-terminal that a program writes to; null where the system has none to give.
Stream terminal() {
  static const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0) return {nullptr, std::fclose};
  return {std::fopen(::ptsname(master), "w"), std::fclose};
}

/// Sets a variable of the environment, or takes it away, as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* had = std::getenv(name)) had_ = had;
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { had_ ? ::setenv(name_, had_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> had_;
};

TEST(Terminal, AloneHasColours) {
  const Stream screen = terminal();
  if (!screen) GTEST_SKIP() << "no pseudo-terminal here";
  const Variable kind("TERM", "xterm"), none("NO_COLOR", nullptr);
  EXPECT_EQ(toned("error:", Tone::error, screen.get()), "\x1b[1;31merror:\x1b[0m");
  const Stream file(std::tmpfile(), std::fclose);
  EXPECT_EQ(toned("error:", Tone::error, file.get()), "error:");
}

TEST(Terminal, HasNoneWhereTheUserWantsNone) {
  const Stream screen = terminal();
  if (!screen) GTEST_SKIP() << "no pseudo-terminal here";
  {
    const Variable kind("TERM", "xterm"), none("NO_COLOR", "1");
    EXPECT_EQ(toned("best", Tone::best, screen.get()), "best");
  }
  {
    const Variable kind("TERM", "xterm"), none("NO_COLOR", "");
    EXPECT_NE(toned("best", Tone::best, screen.get()), "best") << "an empty NO_COLOR says nothing";
  }
  for (const char* plain : {"dumb", static_cast<const char*>(nullptr)}) {
    const Variable kind("TERM", plain), none("NO_COLOR", nullptr);
    EXPECT_EQ(toned("best", Tone::best, screen.get()), "best");
  }
}

}  // namespace
}  // namespace braid
