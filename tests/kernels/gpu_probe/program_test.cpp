#include <gtest/gtest.h>

#include "kernels/gpu_probe/arguments.h"
#include "kernels/gpu_probe/errors.h"
#include "kernels/gpu_probe/output_file.h"
#include "kernels/gpu_probe/shapes.h"
#include "shell.h"
#include "support.h"

namespace braid::gpu_probe {
namespace {

template <typename Action>
std::string usage_error_of(const Action& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Arguments, AreRefusedWithTheNextAction) {
  const auto refused = [](const std::vector<std::string>& words) {
    return usage_error_of([&] { parse_arguments(words); });
  };
  EXPECT_EQ(refused({}), "--out is missing; give a file for the profile");
  EXPECT_EQ(refused({"--out"}), "--out has no value; see --help");
  EXPECT_EQ(refused({"--fast"}), "unknown argument '--fast'; see --help");
  EXPECT_EQ(refused({"--list=all"}), "unknown argument '--list=all'; see --help");
  for (const std::string seconds : {"0", "-3", "many", "5s", "", "nan", "inf"})
    EXPECT_PRED2(contains, refused({"--seconds", seconds, "--list"}), "'" + seconds + "'") << seconds;
}

TEST(Arguments, ValuesFollowOrAreJoined) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--seconds", "2.5", "--out", "p.json"}, {"--seconds=2.5", "--out=p.json"}}) {
    const Arguments arguments = parse_arguments(words);
    EXPECT_EQ(arguments.seconds, 2.5);
    EXPECT_EQ(arguments.out, "p.json");
    EXPECT_FALSE(arguments.overwrite);
  }
  EXPECT_TRUE(parse_arguments({"--list"}).list);
}

TEST(OutputFile, IsWrittenWholeAndNotOverAnother) {
  const TestFolder folder;
  const std::filesystem::path file = folder / "p.json";
  EXPECT_NO_THROW(check_output(file, false));
  write_output(file, "first");
  EXPECT_EQ(read_file(file), "first");
  EXPECT_PRED2(contains, usage_error_of([&] { check_output(file, false); }),
               "exists; give another file or --overwrite");
  EXPECT_NO_THROW(check_output(file, true));
  write_output(file, "second");
  EXPECT_EQ(read_file(file), "second");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a temporary file stayed";
  EXPECT_PRED2(contains, usage_error_of([&] { check_output(folder.path(), true); }), "is a folder; give a file");
  EXPECT_PRED2(contains, usage_error_of([&] { check_output(folder / "no" / "p.json", true); }), "no such folder");
}

#ifdef BRAID_GPU_PROBE
/// Where no GPU can be seen.
Outcome run_probe(const std::string& words) {
  return run_shell("CUDA_VISIBLE_DEVICES= " BRAID_GPU_PROBE " " + words);
}

TEST(GpuProbe, ListsWithoutAGpu) {
  const Outcome outcome = run_probe("--list");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, listing(all_points()));
}

TEST(GpuProbe, SaysInOneLineThatThereIsNoGpu) {
  const TestFolder folder;
  const Outcome outcome = run_probe("--out " + (folder / "p.json").string());
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.text.rfind("error: no CUDA device", 0), 0U) << outcome.text;
  EXPECT_PRED2(contains, outcome.text, "; run this where a GPU is\n");
  EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(GpuProbe, RefusesBadArgumentsBeforeItLooksForAGpu) {
  const TestFolder folder;
  const std::filesystem::path file = folder.write("p.json", "{}");
  for (const std::string& words : {std::string("--fast"), std::string(), "--out " + file.string()}) {
    const Outcome outcome = run_probe(words);
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_EQ(outcome.text.rfind("error: ", 0), 0U) << outcome.text;
  }
  EXPECT_EQ(read_file(file), "{}");
}
#endif

}  // namespace
}  // namespace braid::gpu_probe
