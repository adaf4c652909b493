#include <set>
#include <thread>

#include <nlohmann/json.hpp>

#include "cli/testing.h"
#include "support.h"

namespace braid::cli {
namespace {

using testing::read_text;
using testing::run_braid;

/// A trace of 300 jobs that queue on 16 GPUs.
std::string busy_trace(const TestFolder& folder) {
  const std::string file = (folder / "jobs.csv").string();
  EXPECT_EQ(
      run_braid("trace generate --jobs 300 --rate 2 --mean 40 --deviation 50 --gpus 1:6,2:2,8:1 --seed 5 --out " + file)
          .status,
      0);
  return file;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(ClusterCommand, WritesAllRunsInOrderWithMeansOverSeeds) {
  const TestFolder folder;
  const std::string out = (folder / "study").string();
  const Outcome told = run_braid("cluster --trace " + busy_trace(folder) +
                                 " --gpus 16 --scheduler fcfs,mux --policy hf-peft,muxtune --seeds 3 --seed 4"
                                 " --datasets sst2 --sweep most-tasks=2,4 --gpu-hour-price 2 --out " +
                                 out);
  ASSERT_EQ(told.status, 0) << told.text;
  EXPECT_TRUE(contains(told.text, "offered load"));
  const std::vector<std::string> rows = lines_of(read_text(folder / "study/jobs.csv"));
  ASSERT_EQ(rows.size(), 1U + 300U * 2 * 2 * 2 * 3);
  EXPECT_EQ(rows[0],
            "job_id,submit_s,start_s,finish_s,gpus,shared,queue_s,run_s,tokens,instance,preemptions,scheduler,policy,"
            "placement,seed,most-tasks");
  EXPECT_TRUE(contains(rows[1], ",fcfs,hf-peft,packed,4,2"));
  EXPECT_TRUE(contains(rows.back(), ",mux,muxtune,packed,6,4"));
  const auto summary = nlohmann::json::parse(read_text(folder / "study/summary.json"));
  EXPECT_EQ(summary["runs"].size(), 24U);
  ASSERT_EQ(summary["groups"].size(), 8U);
  const auto metrics = [&](std::size_t group) { return summary["groups"][group]["metrics"]; };
  EXPECT_EQ(summary["groups"][1]["policy"], "muxtune");
  EXPECT_GT(metrics(1)["tokens_per_second"]["mean"], metrics(0)["tokens_per_second"]["mean"]);
  EXPECT_GT(metrics(0)["completion_mean_seconds"]["ci95"].get<double>(), 0);
  EXPECT_NEAR(metrics(0)["cost"]["mean"].get<double>(), 2 * metrics(0)["gpu_hours"]["mean"].get<double>(), 1e-6);
  for (const auto& run : summary["runs"]) {
    EXPECT_EQ(run["metrics"]["finished"], 300);
    EXPECT_LE(run["estimates"]["error_p99"].get<double>(), 0.02);
  }
  EXPECT_EQ(lines_of(read_text(folder / "study/utilization.csv"))[0],
            "from_s,gpus,running,waiting,tokens_per_second,scheduler,policy,placement,seed,most-tasks");
}

/// Instances may grow, jobs may change their GPUs, and tasks may be on several backbones; the work stays the same.
TEST(ClusterCommand, ScalesAndIsElastic) {
  const TestFolder folder;
  const Outcome told = run_braid("cluster --trace " + busy_trace(folder) +
                                 " --gpus 16 --scheduler fcfs,goodput --datasets sst2 --backbone llama2-7b,gpt3-2.7b"
                                 " --policy muxtune --out " +
                                 (folder / "o").string());
  ASSERT_EQ(told.status, 0) << told.text;
  const auto runs = nlohmann::json::parse(read_text(folder / "o/summary.json"))["runs"];
  EXPECT_EQ(runs[0]["metrics"]["resizes"], 0);
  EXPECT_GT(runs[1]["metrics"]["resizes"], 0);
  const auto billed = [](const nlohmann::json& run) {
    return run["metrics"]["tokens_per_second"].get<double>() * run["metrics"]["makespan_seconds"].get<double>();
  };
  EXPECT_NEAR(billed(runs[1]), billed(runs[0]), 1e-6 * billed(runs[0]));
  const Outcome scaled =
      run_braid("cluster --trace " + (folder / "jobs.csv").string() +
                " --gpus 16 --datasets sst2 --batch-sizes 8 --sweep scaling=out,up,up-then-out --json");
  ASSERT_EQ(scaled.status, 0) << scaled.text;
  const auto swept = nlohmann::json::parse(scaled.text)["runs"];
  EXPECT_EQ(swept[0]["metrics"]["resizes"], 0);
  EXPECT_GT(swept[1]["metrics"]["resizes"], 0);
  EXPECT_GT(swept[2]["metrics"]["instances"], swept[1]["metrics"]["instances"]);
  EXPECT_NEAR(billed(swept[1]), billed(swept[0]), 1e-6 * billed(swept[0]));
}

/// Work is the same whatever the policy, and what is billed is what was owed.
TEST(ClusterCommand, PoliciesHaveTheSameWork) {
  const TestFolder folder;
  const Outcome told = run_braid("cluster --trace " + busy_trace(folder) +
                                 " --gpus 8 --policy nemo,sl-peft,muxtune --datasets qa --json");
  ASSERT_EQ(told.status, 0) << told.text;
  const auto runs = nlohmann::json::parse(told.text)["runs"];
  const auto billed = [](const nlohmann::json& run) {
    return run["metrics"]["tokens_per_second"].get<double>() * run["metrics"]["makespan_seconds"].get<double>();
  };
  for (const auto& run : runs) EXPECT_NEAR(billed(run), billed(runs[0]), 1e-6 * billed(runs[0]));
}

/// Kills a study as soon as one of its runs is done, again until it was killed before the last.
void kill_midway(const std::string& words, const std::filesystem::path& out, std::ptrdiff_t runs) {
  const std::string parts = (out / "runs").string() + "/*.summary.json";
  for (int attempt = 0; attempt < 50; ++attempt) {
    run_shell("exec 2> /dev/null; (exec " BRAID_PROGRAM " " + words + " --overwrite --out " + out.string() +
              " > /dev/null) & until ls " + parts + " > /dev/null || ! kill -0 $!; do :; done; kill -KILL $!; wait");
    std::ptrdiff_t done = 0;
    if (std::filesystem::exists(out / "runs")) {
      for (const auto& file : std::filesystem::directory_iterator(out / "runs"))
        done += file.path().string().ends_with(".summary.json");
    }
    if (done > 0 && done < runs) return;
  }
  FAIL() << "never killed between the first run and the last";
}

TEST(ClusterCommand, AStudyThatWasKilledGoesOnToTheSameBytes) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) +
                            " --gpus 16 --datasets sst2 --scheduler fcfs,easy,sjf,srtf --sweep load=0.5,0.8,1.1"
                            " --sweep gpus=16,32 --placement packed,spread";
  const auto out = [&](const std::string& name) { return " --out " + (folder / name).string(); };
  ASSERT_EQ(run_braid(words + " --threads 1" + out("whole")).status, 0);
  kill_midway(words, folder / "killed", 4 * 3 * 2 * 2);
  // What the disk had not got yet.
  const std::filesystem::directory_iterator parts(folder / "killed/runs");
  const auto is_jobs = [](const auto& file) { return file.path().string().ends_with(".jobs.csv"); };
  std::filesystem::resize_file(std::find_if(begin(parts), end(parts), is_jobs)->path(), 100);
  const Outcome resumed = run_braid(words + " --threads 2 --resume" + out("killed"));
  ASSERT_EQ(resumed.status, 0) << resumed.text;
  for (const char* file : {"jobs.csv", "utilization.csv", "summary.json"})
    EXPECT_EQ(read_text(folder / "whole" / file), read_text(folder / "killed" / file)) << file;
  EXPECT_FALSE(std::filesystem::exists(folder / "killed/runs"));
  // There is nothing left to do; and another study is not mistaken for this one.
  EXPECT_EQ(run_braid(words + " --resume" + out("killed")).status, 0);
  EXPECT_TRUE(
      contains(run_braid(words + " --seeds 2 --resume" + out("killed")).text, "holds a study of other settings"));
  EXPECT_EQ(run_braid(words + out("killed")).status, 2);
  EXPECT_TRUE(contains(run_braid(words + " --gpu-hour-price 3 --resume" + out("killed")).text, "other settings"));
  // What is damaged is not taken for done.
  std::filesystem::remove(folder / "killed/jobs.csv");
  EXPECT_TRUE(contains(run_braid(words + " --resume" + out("killed")).text, "holds a study that is damaged"));
  folder.write("whole/summary.json", "[]");
  EXPECT_TRUE(contains(run_braid(words + " --resume" + out("whole")).text, "holds a study that is damaged"));
}

TEST(ClusterCommand, RanksShareTheRunsOut) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) +
                            " --gpus 16 --scheduler fcfs,srtf,mux --datasets sst2 --seeds 2 --policy muxtune,sl-peft";
  ASSERT_EQ(run_braid(words + " --out " + (folder / "one").string()).status, 0);
  const Outcome told = run_shell("mpirun --allow-run-as-root --oversubscribe -n 2 " BRAID_PROGRAM " " + words +
                                 " --threads 1 --out " + (folder / "two").string());
  ASSERT_EQ(told.status, 0) << told.text;
  for (const char* file : {"jobs.csv", "utilization.csv", "summary.json"})
    EXPECT_EQ(read_text(folder / "one" / file), read_text(folder / "two" / file)) << file;
}

/// What --json tells of each run.
nlohmann::json runs_of(const std::string& words) {
  const Outcome told = run_braid(words);
  EXPECT_EQ(told.status, 0) << told.text;
  return nlohmann::json::parse(told.text)["runs"];
}

/// The process is started anew (restart_with_sleeping_threads), by which time OpenMP has bound it to one place.
TEST(ClusterCommand, BoundThreadsStandOnProcessorsOfTheirOwn) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor alone";
  const TestFolder folder;
  const Outcome told = run_shell(
      "OMP_NUM_THREADS=2 OMP_PROC_BIND=true OMP_DISPLAY_AFFINITY=true OMP_AFFINITY_FORMAT='on processors "
      "%A.' " BRAID_PROGRAM " cluster --trace " +
      busy_trace(folder) + " --gpus 16 --scheduler fcfs --policy hf-peft --seeds 2 --datasets sst2 --out " +
      (folder / "study").string());
  ASSERT_EQ(told.status, 0) << told.text;
  std::set<std::string> places;
  for (const std::string& line : lines_of(told.text)) {
    if (contains(line, "on processors ")) places.insert(line);
  }
  EXPECT_EQ(places.size(), 2U) << told.text;
}

TEST(ClusterCommand, TheLoadIsOfTheRunsAndNotOfWhatTheySweep) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --jobs as-recorded ";
  const auto told = [&](const std::string& more) { return run_braid(words + more).text; };
  EXPECT_TRUE(contains(told("--gpus 16 --sweep load=0.7,1.0"), "offered load  0.70, 1.00, as asked for"));
  const std::string swept = told("--sweep gpus=32,64"), one = told("--gpus 16");
  EXPECT_TRUE(contains(swept, "cluster       32, 64 a40, 4 a node"));
  const auto load = [](const std::string& text) { return std::stod(text.substr(text.find("offered load  ") + 14)); };
  EXPECT_NEAR(load(swept), load(one) / 2, 0.01);
}

TEST(ClusterCommand, EachSeedHasATraceOfItsOwnWhereNoneIsGiven) {
  const auto first_submission = [](const TestFolder& folder, std::size_t run) {
    const std::vector<std::string> rows = lines_of(read_text(folder / "o/jobs.csv"));
    return rows[1 + run * (rows.size() - 1) / 2];
  };
  const TestFolder both, second;
  const std::string words = "cluster --jobs as-recorded --gpus 256 --seeds 2 --out ";
  ASSERT_EQ(run_braid(words + (both / "o").string() + " --seed 6").status, 0);
  ASSERT_EQ(run_braid(words + (second / "o").string() + " --seed 7").status, 0);
  EXPECT_NE(first_submission(both, 0).substr(0, 9), first_submission(both, 1).substr(0, 9));
  EXPECT_EQ(first_submission(both, 1), first_submission(second, 0));
}

TEST(ClusterCommand, StrictRefusesTasksThatFitNoInstance) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --gpus 4 --datasets sst2 --instance-gpus 1" +
                            " --backbone llama2-7b,llama2-70b --audit 0";
  const Outcome lenient = run_braid(words);
  EXPECT_EQ(lenient.status, 0);
  EXPECT_TRUE(contains(lenient.text, "of a kind that fits no instance"));
  const Outcome strict = run_braid(words + " --strict --out " + (folder / "o").string());
  EXPECT_EQ(strict.status, 2);
  EXPECT_TRUE(contains(strict.text, "does not fit the memory of an instance under muxtune"));
  EXPECT_FALSE(std::filesystem::exists(folder / "o"));
}

TEST(ClusterCommand, WhatIsPrintedToAFullDiskIsMissed) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --jobs as-recorded --gpus 16 ";
  for (const char* more : {"", "--json"}) {
    const Outcome told = run_shell("(" BRAID_PROGRAM " " + words + more + " 2>&1 > /dev/full)");
    EXPECT_EQ(told.status, 1);
    EXPECT_TRUE(contains(told.text, "No space left on device")) << told.text;
  }
}

TEST(ClusterCommand, EstimatesThatAreFarOffReplaysFailTheRun) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --gpus 16 --datasets sst2 --audit 0.2 --out " +
                            (folder / "o").string();
  const Outcome close = run_braid(words);
  ASSERT_EQ(close.status, 0) << close.text;
  EXPECT_TRUE(contains(close.text, "held against full replays"));
  auto summary = nlohmann::ordered_json::parse(read_text(folder / "o/summary.json"));
  EXPECT_GT(summary["runs"][0]["estimates"]["audited"], 10);
  summary["runs"][0]["estimates"]["error_p99"] = 0.0201;
  folder.write("o/summary.json", summary.dump());
  const Outcome far = run_braid(words + " --resume");
  EXPECT_EQ(far.status, 1);
  EXPECT_TRUE(contains(far.text, "error: estimates are off full replays by 2.0 %"));
}

TEST(ClusterCommand, GpusFailAndTheSameWorkIsDone) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --gpus 16 --datasets sst2 --json --seed 3";
  const auto run_of = [&](const std::string& more) { return runs_of(words + more)[0]; };
  const auto billed = [](const nlohmann::json& run) {
    return run["metrics"]["tokens_per_second"].get<double>() * run["metrics"]["makespan_seconds"].get<double>();
  };
  const auto whole = run_of(""), failing = run_of(" --gpu-mtbf-hours 20 --node-mtbf-hours 40 --repair-hours 1");
  EXPECT_FALSE(whole["metrics"].contains("outages"));
  EXPECT_GT(failing["metrics"]["restarts"], 0);
  EXPECT_GT(failing["metrics"]["lost_gpu_hours"], 0);
  EXPECT_GT(failing["metrics"]["out_of_service"], 0);
  EXPECT_GT(failing["metrics"]["makespan_seconds"], whole["metrics"]["makespan_seconds"]);
  EXPECT_NEAR(billed(failing), billed(whole), 1e-6 * billed(whole));
  // More checkpoints lose less.
  const auto often = run_of(" --gpu-mtbf-hours 20 --node-mtbf-hours 40 --repair-hours 1 --checkpoint-minutes 1");
  EXPECT_LT(often["metrics"]["lost_gpu_hours"], failing["metrics"]["lost_gpu_hours"]);
  // All nodes out for an hour.
  const auto file = folder.write("outages.csv", "node,from_s,to_s\n0,0,3600\n1,0,3600\n2,0,3600\n3,0,3600\n");
  const auto late = run_of(" --outages " + file.string());
  EXPECT_EQ(late["metrics"]["outages"], 4);
  const auto none = run_of(" --gpu-mtbf-hours 1000000000");
  EXPECT_EQ(none["metrics"]["lost_gpu_hours"], 0);
  EXPECT_GT(late["metrics"]["queueing_mean_seconds"], whole["metrics"]["queueing_mean_seconds"]);
}

TEST(ClusterCommand, TermsAreDrawnForJobsThatHaveNone) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --gpus 8 --jobs as-recorded --json --seed 3";
  const auto plain = runs_of(words + " --scheduler edf,fcfs-any");
  EXPECT_FALSE(plain[0]["metrics"].contains("deadlines_met"));
  const auto due = runs_of(words + " --scheduler edf,fcfs-any,deadline --deadline-slack 1.5:4");
  EXPECT_GT(due[2]["metrics"]["deadlines_met"], due[1]["metrics"]["deadlines_met"]);
  EXPECT_EQ(runs_of(words + " --scheduler budget --budget-slack 1:2")[0]["metrics"]["rejected"], 0);
  EXPECT_GT(runs_of(words + " --scheduler budget --budget-slack 0.5:2")[0]["metrics"]["rejected"], 0);
  EXPECT_NE(runs_of(words + " --scheduler priority --priorities 3"),
            runs_of(words + " --scheduler priority --priorities 1"));
}

TEST(ClusterCommand, ATimelineShowsEveryStretchOfEveryJob) {
  const TestFolder folder;
  const std::string words = "cluster --trace " + busy_trace(folder) + " --gpus 16 --jobs as-recorded --out " +
                            (folder / "o").string() + " --timeline-out " + (folder / "timeline.json").string();
  const Outcome told = run_braid(words + " --scheduler srtf --gpu-mtbf-hours 20");
  ASSERT_EQ(told.status, 0) << told.text;
  std::map<std::string, double> seconds;
  int breaks = 0;
  const auto timeline = nlohmann::json::parse(read_text(folder / "timeline.json"));
  for (const auto& event : timeline["traceEvents"]) {
    if (event["ph"] == "X") seconds[event["name"]] += event["dur"].get<double>() / 1e6;
    breaks += event["ph"] == "i";
  }
  EXPECT_GT(breaks, 0);
  const std::vector<std::string> rows = lines_of(read_text(folder / "o/jobs.csv"));
  ASSERT_EQ(rows.size(), 1U + seconds.size());
  for (std::size_t r = 1; r < rows.size(); ++r) {
    std::istringstream in(rows[r]);
    std::vector<std::string> fields;
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    EXPECT_NEAR(seconds[fields[0]], std::stod(fields[7]), 0.002);
  }
  EXPECT_TRUE(contains(run_braid(words + " --scheduler fcfs,srtf --overwrite").text, "is of one run, and these are 2"));
  // Nothing that the study reads or writes is replaced.
  const std::string trace = (folder / "jobs.csv").string(), before = read_text(trace);
  const auto refused = [&](const std::string& file) {
    return run_braid("cluster --trace " + trace + " --gpus 16 --jobs as-recorded --overwrite --out " +
                     (folder / "o").string() + " --timeline-out " + file)
        .text;
  };
  EXPECT_TRUE(contains(refused(trace), "is read by this study"));
  EXPECT_TRUE(contains(refused((folder / "o/summary.json").string()), "lies in --out"));
  EXPECT_EQ(read_text(trace), before);
}

TEST(ClusterCommand, JobsThatFitNowhereAreRejectedAndListed) {
  const TestFolder folder;
  const std::string file = folder.write("t.csv", "job_id,submit_s,duration_s,gpus\na,0,9,1\n\"b,c\",1,9,64\n").string();
  const std::string words = "cluster --trace " + file + " --gpus 8 --jobs as-recorded --out " + (folder / "o").string();
  ASSERT_EQ(run_braid(words).status, 0);
  EXPECT_EQ(lines_of(read_text(folder / "o/jobs.csv"))[2], "\"b,c\",1.000,,,64,0,,,,,,fcfs,as-recorded,packed,1");
  EXPECT_EQ(nlohmann::json::parse(read_text(folder / "o/summary.json"))["runs"][0]["rejected"][0], "b,c");
  const Outcome strict = run_braid(words + " --strict --overwrite");
  EXPECT_EQ(strict.status, 2);
  EXPECT_TRUE(contains(strict.text, "job 'b,c' has 64 GPUs, and the cluster 8")) << strict.text;
}

TEST(ClusterCommand, BadInputIsSaidBeforeAnythingIsWritten) {
  const TestFolder folder;
  const std::string file = folder.write("t.csv", "submit_s,duration_s\n0,10\n1,20\n").string();
  const std::string out = (folder / "out").string();
  const auto refuses = [&](const std::string& words, const std::string& what) {
    const Outcome outcome = run_braid("cluster --trace " + file + " --out " + out + " " + words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_TRUE(contains(outcome.text, what)) << words << ": " << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(out)) << words;
  };
  refuses("--scheduler lottery", "scheduler 'lottery' is not known; give one of fcfs");
  refuses("--policy none", "policy");
  refuses("--placement loose", "packed");
  refuses("--gpus 0", "a cluster of 0 GPUs is not usable");
  refuses("--gpus 6", "6 GPUs are no whole number of nodes, which have 4 each");
  refuses("--instance-gpus 256", "larger than the cluster, which has 128");
  refuses("--instance-gpus 6", "no whole number of nodes");
  refuses("--datasets sst2,mnist", "unknown dataset 'mnist'; give one of sst2, qa, rte");
  refuses("--backbone gpt5", "gpt5");
  refuses("--batch-sizes 4,x", "give whole numbers above 0");
  refuses("--seeds 0", "give 1 or more");
  refuses("--most-tasks 0", "give 1 or more");
  refuses("--horizon never", "give drain, or seconds above 0");
  refuses("--sweep speed=1,2", "--sweep speed is not known; give one of gpus, load");
  refuses("--sweep load=1,fast", "'fast' is not usable");
  refuses("--sweep gpus", "give NAME=VALUE,VALUE");
  refuses("--audit 2", "give 0 to 1");
  refuses("--jobs as-recorded --policy muxtune", "--policy is of fine-tuning");
  refuses("--jobs as-recorded --most-tasks 4", "--most-tasks is of fine-tuning");
  refuses("--elastic-gpus 1,2", "--elastic-gpus means nothing without --scheduler goodput");
  refuses("--resume --overwrite", "give one of them");
  refuses("--load 0.7 --sweep load=0.9", "are both given");
  refuses("--policy nemo --sweep most-tasks=2,4", "--most-tasks means nothing without a policy that shares");
  refuses("--sweep checkpoint-minutes=2,4", "--checkpoint-minutes means nothing without failures");
  refuses("--load 0", "give a number above 0");
  refuses("--instance-gpus 0", "give 1 or more");
  refuses("--repair-hours 2", "--repair-hours means nothing without --gpu-mtbf-hours");
  refuses("--checkpoint-minutes 2", "--checkpoint-minutes means nothing without failures");
  refuses("--scheduler fcfs,sjf,fcfs", "has 'fcfs' twice");
  refuses("--jobs as-recorded --sweep most-tasks=2,4", "--sweep most-tasks is of fine-tuning");
  refuses("--sweep gpus=4,8 --sweep gpus=16", "--sweep gpus is given twice");
  refuses("--jobs some", "give fine-tuning or as-recorded");
  refuses("--scheduler drf --quotas a=1", "the trace has no virtual cluster 'a'; it has none");
  refuses("--scheduler drf --quotas a", "give NAME=WEIGHT with weights above 0");
  refuses("--deadline-slack 3:2", "give the lower number first");
  refuses("--budget-slack 1:x", "give LOW:HIGH, numbers above 0");
  refuses("--deadline-slack 0", "give LOW:HIGH, numbers above 0");
  refuses("--priorities 0", "give 1 to 1000000");
  refuses("--gpu-hour-price -2", "give a number >= 0");
  refuses("--gpus -1", "a cluster of -1 GPUs is not usable");
  refuses("--gpu-mtbf-hours -1", "give a number above 0");
  refuses("--scaling down", "scaling 'down' is not known; give one of out, up, up-then-out");
  refuses("--scheduler goodput --jobs as-recorded", "jobs as recorded have theirs");
  refuses("--scheduler fcfs,goodput --sweep scaling=out,up", "leave --scaling away");
  refuses("--scheduler goodput --elastic-gpus 2,6", "no whole number of nodes");
  refuses("--scheduler goodput --elastic-gpus 0", "give whole numbers above 0");
  refuses("--gpu-mtbf-hours 0", "give a number above 0");
  refuses("--gpu-mtbf-hours 9 --checkpoint-minutes -1", "give a number above 0");
  refuses("--sweep node-mtbf-hours=0", "give numbers above 0");
  const std::string outages = folder.write("outages.csv", "node,from_s,to_s\n32,0,1\n").string();
  refuses("--outages " + outages, "outages.csv:2: node 32 is not of the cluster, whose nodes are 0 to 31");
  refuses("--outages " + outages + " --gpus 256 --sweep gpus=64", "whose nodes are 0 to 15");
  const std::string hours = folder.write("hours.csv", "node,from_s,to_s\n3,0,1\n").string();
  refuses("--outages " + hours + " --gpu-mtbf-hours 9", "leave one out");
  refuses("--outages " + hours + " --sweep gpu-mtbf-hours=1,2", "leave one out");
  refuses("--outages " + hours + " --load 0.5", "--load changes");
  refuses("--gpu-mtbf-hours 1e-20", "give 1 s or more");
  refuses("--outages " + file, "give from_s, to_s and node");
  folder.write("empty.csv", "submit_s,duration_s\n");
  EXPECT_EQ(run_braid("cluster --trace " + (folder / "empty.csv").string()).status, 2);
  EXPECT_EQ(run_braid("cluster --trace " + file + " --out " + file).status, 2);
  EXPECT_EQ(run_braid("cluster --trace " + file + " --jobs as-recorded --out /dev/full/x").status, 2);
}

}  // namespace
}  // namespace braid::cli
