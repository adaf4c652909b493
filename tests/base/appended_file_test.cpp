#include "base/appended_file.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"

namespace braid {
namespace {

/// What a disk has no room for is in the file once there is room, and no part of it before.
TEST(AppendedFile, WhatCannotBeWrittenWaits) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("braid-appended-" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  AppendedFile file(path);
  EXPECT_TRUE(file.append("one\n"));
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 10;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_TRUE(file.append("two\n"));
  EXPECT_FALSE(file.append("three\n"));
  EXPECT_FALSE(file.append("four\n"));
  EXPECT_EQ(file.waiting(), 11U);
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(file.append("five\n"));
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\nfour\nfive\n");
  EXPECT_EQ(file.waiting(), 0U);
  // Behind what another process left.
  AppendedFile again(path);
  EXPECT_TRUE(again.append("six\n"));
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\nfour\nfive\nsix\n");
  std::filesystem::remove(path);
}

TEST(AppendedFile, AFolderThatIsNotThereIsNoRoom) {
  AppendedFile file("/nowhere/file");
  EXPECT_FALSE(file.append("one\n"));
  EXPECT_EQ(file.waiting(), 4U);
}

}  // namespace
}  // namespace braid
