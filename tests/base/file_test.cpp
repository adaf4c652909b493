#include "base/file.h"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support.h"

namespace {

/// What was synced, in order: its path and whether `watched` was there by then.
struct Syncs {
  std::vector<std::pair<std::filesystem::path, bool>> calls;
  std::filesystem::path watched;
  int failing_call = -1;
  int reason = 0;
} syncs;

}  // namespace

/// The library's own, spied on.
extern "C" int fsync(int file) {
  const bool fails = std::ssize(syncs.calls) == syncs.failing_call;
  syncs.calls.emplace_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)),
                           std::filesystem::exists(syncs.watched));
  if (fails) {
    errno = syncs.reason;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace braid {
namespace {

std::vector<std::string> entries(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(File, ReadsBackWhatWasWritten) {
  const TestFolder folder;
  std::string bytes;
  for (int i = 0; i < 70000; ++i) bytes.push_back(static_cast<char>(i * 7));
  for (const std::string& content : {std::string(), std::string("\r\n\0x", 4), bytes}) {
    write_file(folder / "f", content);
    EXPECT_EQ(read_file(folder / "f"), content);
  }
}

TEST(File, WritingMakesTheFoldersAboveAndLeavesNothingElse) {
  const TestFolder folder;
  write_file(folder.path() / "a" / "b" / "f", "x");
  EXPECT_EQ(entries(folder.path() / "a" / "b"), std::vector<std::string>{"f"});
}

TEST(File, AWriterThatThrowsLeavesTheOldFileAndNothingElse) {
  const TestFolder folder;
  folder.write("f", "old");
  const auto throwing = [](std::ostream& out) {
    out << std::string(100000, 'x');
    throw std::runtime_error("stop");
  };
  EXPECT_THROW(write_file(folder / "f", throwing), std::runtime_error);
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_THROW(write_file(folder / "fresh", throwing), std::runtime_error);
  EXPECT_EQ(entries(folder.path()), std::vector<std::string>{"f"});
}

TEST(File, AStreamThatFailsIsAFailure) {
  const TestFolder folder;
  EXPECT_THROW(write_file(folder / "f", [](std::ostream& out) { out.setstate(std::ios::badbit); }), Failure);
  EXPECT_TRUE(entries(folder.path()).empty());
}

TEST(File, IsOnTheDiskBeforeItHasItsNameAndItsNameAfter) {
  const TestFolder folder;
  syncs = {.calls = {}, .watched = folder / "f"};
  write_file(folder / "f", "x");
  ASSERT_EQ(syncs.calls.size(), 2U);
  EXPECT_TRUE(syncs.calls[0].first.filename().string().starts_with("f.")) << syncs.calls[0].first;
  EXPECT_FALSE(syncs.calls[0].second);
  EXPECT_EQ(syncs.calls[1].first, std::filesystem::canonical(folder.path()));
  EXPECT_TRUE(syncs.calls[1].second);
}

TEST(File, ADiskThatFailsIsAFailureAndTheOldFileStays) {
  const TestFolder folder;
  folder.write("f", "old");
  syncs = {.calls = {}, .watched = folder / "f", .failing_call = 0, .reason = EIO};
  EXPECT_THROW(write_file(folder / "f", "new"), Failure);
  EXPECT_EQ(read_file(folder / "f"), "old");
  syncs = {.calls = {}, .watched = folder / "f", .failing_call = 1, .reason = EIO};
  EXPECT_THROW(write_file(folder / "f", "new"), Failure);
  EXPECT_EQ(entries(folder.path()), std::vector<std::string>{"f"});
  // A file system without syncing.
  syncs = {.calls = {}, .watched = folder / "f", .failing_call = 1, .reason = EINVAL};
  write_file(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  syncs = {};
}

TEST(File, AFullDiskIsAFailureThatSaysSo) {
  const TestFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string said;
  try {
    write_file(folder / "f", std::string(100000, 'x'));
  } catch (const Failure& failure) {
    said = failure.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(contains(said, "f: writing failed (File too large)")) << said;
  EXPECT_TRUE(entries(folder.path()).empty());
}

TEST(File, WhatCannotBeWrittenIsAnErrorBeforeAnythingIsDone) {
  const TestFolder folder;
  folder.write("file", "x");
  std::filesystem::create_directory(folder / "busy");
  folder.write("busy/f", "x");
  expect_error([&] { write_file(folder.path() / "file" / "below", "x"); }, "file: is not a folder");
  expect_error([&] { write_file(folder / "busy", "x"); }, "busy: is a folder; give a file");
  expect_error([] { write_file("/dev/null", "x"); }, "/dev/null: is not a plain file");
  check_writable(folder.path() / "new" / "deep" / "file");
  EXPECT_EQ(entries(folder.path()), (std::vector<std::string>{"busy", "file"}));
}

TEST(File, WhatCannotBeReadIsAnError) {
  const TestFolder folder;
  expect_error([&] { read_file(folder / "none"); }, "none: cannot be read (No such file or directory); ");
  expect_error([&] { read_file(folder.path()); }, "is a folder; give a file");
  expect_error([&] { hash_file(folder / "none"); }, "none: cannot be read");
  expect_error([&] { read_file(folder / std::string(5000, 'n')); }, "cannot be read");
}

TEST(File, HashesAreThoseOfXxh3) {
  // XXH128 of nothing and of "a".
  EXPECT_EQ(hash_bytes(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_bytes("a"), "a96faf705af16834e6c632b61e964e1f");
}

TEST(File, AFilesHashIsThatOfItsBytes) {
  const TestFolder folder;
  for (const std::size_t size : {0U, 1U, 240U, 1U << 20, (1U << 20) + 1}) {
    const std::string content(size, 'q');
    EXPECT_EQ(hash_file(folder.write("f", content)), hash_bytes(content)) << size;
  }
  EXPECT_NE(hash_bytes("ab"), hash_bytes("ba"));
}

}  // namespace
}  // namespace braid
