#pragma once

#include <string>
#include <string_view>

namespace braid::cli {

/// What ranks write to stderr, taken out of what mpirun adds to it when they end: paragraphs between lines of dashes
/// and lines in its name, which would bury what the ranks themselves tell. Of a rank that a signal ended, which tells
/// nothing, `ended` has the account in one line.
class LauncherOutput {
 public:
  /// Takes the next bytes and returns those of the ranks, as soon as it is clear that they are.
  std::string pass_on(std::string_view bytes);
  /// The rest, once no more come.
  std::string rest();

  /// "rank 1 was ended by signal 9 (Killed), and the others with it"; empty where no rank was.
  const std::string& ended() const { return ended_; }

 private:
  void end_line(std::string& out);

  std::string line_;       // not yet ended
  std::string paragraph_;  // of mpirun's, since its first dashes
  bool in_paragraph_ = false;
  std::string ended_;
};

}  // namespace braid::cli
