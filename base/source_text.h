#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <streambuf>
#include <string>
#include <string_view>

namespace braid {

/// The text of a file, read once from front to back, so that a pipe will do: what a std::istream or a parser reads from
/// where it must be told what the text begins with, or which line it has come to. Memory does not grow with the file. A
/// byte order mark that begins the file is no part of the text. Reading throws Failure when the disk fails.
class SourceText final : public std::streambuf {
 public:
  /// Throws Error when the file cannot be read.
  explicit SourceText(const std::filesystem::path& path);

  /// For text of which nothing is read yet: its first block, up to 64 KiB; empty where there is none. All of the text
  /// is still to be read afterwards. Good until more is read.
  std::string_view beginning();
  /// For text of which no more than its beginning has been looked at: its first character that is no white space, '\0'
  /// where there is none. All of the text is still to be read afterwards; leading white space is held.
  char first_character();

  const std::string& file() const { return file_; }
  /// Of the next character, from 1.
  int line();

 protected:
  int_type underflow() override;

 private:
  /// Puts the next block behind the first `kept` characters of this one; how many there are then.
  std::size_t load(std::size_t kept);

  std::string file_;
  std::ifstream in_;
  std::string block_;
  const char* counted_ = nullptr;  // line breaks before this are in line_
  int line_ = 1;
  bool begun_ = false;  // the first block is loaded
};

}  // namespace braid
