#include <regex>

#include "cli/workspace.h"

namespace braid::cli {
namespace {

using testing::Outcome;
using testing::read_text;
using testing::run_braid;
using testing::write_text;

class Reported : public testing::Workspace {
 protected:
  std::string page(const std::string& words) const {
    const Outcome outcome = run_braid("report --quiet --overwrite " + words + " --out " + path("page.html"));
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    return read_text(folder / "page.html");
  }
  void refused(const std::string& words, const std::string& message) const {
    const Outcome outcome = run_braid("report " + words + " --overwrite --out " + path("page.html"));
    EXPECT_EQ(outcome.status, 2) << outcome.text;
    EXPECT_NE(outcome.text.find(message), std::string::npos) << outcome.text;
  }
  /// Every picture has a sentence, and every tag that is opened is closed.
  static void expect_whole(const std::string& html) {
    const auto count = [&](const std::string& text) {
      std::size_t found = 0;
      for (std::size_t at = html.find(text); at != std::string::npos; at = html.find(text, at + 1)) ++found;
      return found;
    };
    EXPECT_EQ(count("role=\"img\""), count("<figcaption>"));
    for (const char* tag :
         {"section", "figure", "svg", "table", "ul", "li", "div", "p", "details", "title", "td", "text"})
      EXPECT_EQ(count("<" + std::string(tag) + ">") + count("<" + std::string(tag) + " "),
                count("</" + std::string(tag) + ">"))
          << tag;
    EXPECT_EQ(html.find("nan"), std::string::npos);
    EXPECT_EQ(html.find("http"), std::string::npos);
  }
};

TEST_F(Reported, AllKindsOfResultsOfAFolder) {
  const std::string plan = path("out/plan.json");
  std::filesystem::create_directories(folder / "out");
  const auto run = [](const std::string& words) { ASSERT_EQ(run_braid(words).status, 0) << words; };
  run("plan --quiet " + planning() + " --policy megatron-pp --ranks 2 --out " + plan);
  run("compare --quiet --json " + planning() + " --ranks 2 --policy hf-peft,megatron-pp,gpipe > " +
      path("out/compare.json"));
  run("simulate --quiet --plan " + plan + " --timeline-out " + path("out/simulated.json"));
  run("train --quiet --plan " + plan + " --out " + path("out/run"));
  run("validate --quiet --foreign-profile --plan " + plan + " --out " + path("out/validation.json"));
  run("trace generate --jobs 40 --rate 0.2 --out " + path("jobs.csv"));
  run("cluster --quiet --jobs as-recorded --gpus 8 --scheduler fcfs,srtf --sweep load=0.7,1.1 --trace " +
      path("jobs.csv") + " --out " + path("out/study"));
  const std::string html = page(path("out"));
  expect_whole(html);
  for (const char* title : {"Comparison of policies", "Plan: megatron-pp on 2 cpu ranks", "Training run: run",
                            "Timeline of 2 ranks", "Cluster study: study", "Validation: predicted beside measured"})
    EXPECT_NE(html.find(std::string("<h2>") + title + "</h2>"), std::string::npos) << title;
  for (const char* words : {"The loss of all 3 tasks is lower", "The predicted pipeline takes",
                            "proven lower bound of the policy", "of what was measured", "Half of all jobs are done",
                            "The queue is the longest", "Mean completion time in", "Of 8 GPUs up to", "it may hold"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  // The same bytes again, and of each result alone the same section.
  EXPECT_EQ(page(path("out")), html);
  const std::string alone = page(path("out/run"));
  expect_whole(alone);
  EXPECT_EQ(alone.find("<nav>"), std::string::npos);
  EXPECT_NE(html.find(alone.substr(alone.find("<h2>"), alone.find("</section>") - alone.find("<h2>"))),
            std::string::npos);

  // Where the data is gone the plan is told all the same.
  std::filesystem::rename(folder / "data0.jsonl", folder / "moved.jsonl");
  const std::string without = page(plan);
  EXPECT_NE(without.find("Its pipeline is not drawn: "), std::string::npos);
  expect_whole(without);
}

TEST_F(Reported, TheTimelineOfAClusterIsOfItsJobs) {
  ASSERT_EQ(run_braid("trace generate --jobs 40 --rate 0.2 --out " + path("jobs.csv")).status, 0);
  const std::string words = "cluster --quiet --jobs as-recorded --gpus 8 --scheduler fcfs --trace " + path("jobs.csv");
  ASSERT_EQ(run_braid(words + " --out " + path("study") + " --timeline-out " + path("timeline.json")).status, 0);
  const std::string html = page(path("timeline.json"));
  expect_whole(html);
  for (const char* told : {"<h2>Jobs on a cluster</h2>", "jobs waiting", "wait for GPUs.",
                           "Where jobs ran, 40 stretches", "node 0", "job 0: "})
    EXPECT_NE(html.find(told), std::string::npos) << told;
  EXPECT_EQ(html.find("optimizer step"), std::string::npos);
}

TEST_F(Reported, ARunThatDivergedOrHasNothingToTellYet) {
  write_text(
      folder / "run/status.json",
      "{\"format\": 1, \"state\": \"running\", \"tasks\": [{\"task\": \"a<b\", \"state\": \"diverged\", \"step\": 2, "
      "\"steps\": 9}, {\"task\": \"late\", \"state\": \"waiting\", \"step\": 0, \"steps\": 9}]}");
  write_text(folder / "run/metrics.jsonl", "");
  expect_whole(page(path("run")));
  write_text(folder / "run/metrics.jsonl",
             "{\"task\":\"a<b\",\"step\":1,\"loss\":3.5,\"tokens\":8,\"seconds\":0.1}\n"
             "{\"task\":\"a<b\",\"step\":2,\"loss\":null,\"tokens\":8,\"seconds\":0.1}\n{\"task\":\"a<b\",\"st");
  const std::string html = page(path("run"));
  expect_whole(html);
  EXPECT_NE(html.find("a&lt;b"), std::string::npos);
  // A line in the middle that makes no sense is an error.
  write_text(folder / "run/metrics.jsonl", "{\"task\":\n{\"task\":\"a<b\",\"step\":1,\"loss\":3.5}\n");
  refused(path("run"), "metrics.jsonl:1");
}

TEST_F(Reported, WhatIsNoResultIsRefused) {
  refused("", "PATH");
  refused(path("nowhere"), "is not there; give what `braid plan`");
  refused(path("profile.json"), "is no result of braid's");
  write_text(folder / "bad.json", "{\"policies\": [");
  refused(path("bad.json"), "bad.json:1");
  write_text(folder / "bad.json", "{\"format\": 1, \"policies\": [{\"policy\": \"x\"}]}");
  refused(path("bad.json"), "bad.json:1");
  std::filesystem::create_directories(folder / "empty");
  refused(path("empty"), "holds no results");
  write_text(folder / "page.html", "mine");
  EXPECT_EQ(run_braid("report " + path("empty") + " --out " + path("page.html")).status, 2);
  EXPECT_EQ(read_text(folder / "page.html"), "mine");
}

}  // namespace
}  // namespace braid::cli
