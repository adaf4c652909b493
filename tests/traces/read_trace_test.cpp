#include "traces/read_trace.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <fmt/ranges.h>

#include "base/units.h"
#include "support.h"
#include "traces/trace_statistics.h"
#include "traces/write_trace.h"

namespace braid::traces {
namespace {

Trace read(const std::string& text, ReadOptions options = {}) {
  const TestFolder folder;
  return read_trace(folder.write("trace", text), options);
}

struct Expected {
  std::string id;
  double submit, duration;
  std::int32_t gpus;
};

void expect_jobs(const Trace& trace, const std::vector<Expected>& expected) {
  ASSERT_EQ(trace.jobs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Job& job = trace.jobs[i];
    EXPECT_EQ(job.id, expected[i].id) << i;
    EXPECT_EQ(job.submit_seconds, expected[i].submit) << i;
    EXPECT_EQ(job.duration_seconds, expected[i].duration) << i;
    EXPECT_EQ(job.gpus, expected[i].gpus) << i;
  }
}

TEST(ReadTrace, PhillyCsvIsSortedAndKeepsTheClockOnTheWall) {
  const Trace trace = read(
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:00,66.5,1,66.5,b\n\n2017-10-08 "
      "23:00:00,5,8,40,a\n"
      "2017-10-09 07:00:00,7,2,14,a\n");
  EXPECT_EQ(trace.format, "philly-csv");
  EXPECT_EQ(trace.zero, "2017-10-08");
  expect_jobs(trace, {{"1", 23 * kHour, 5, 8}, {"0", 31 * kHour, 66.5, 1}, {"2", 31 * kHour, 7, 2}});
  EXPECT_EQ(trace.virtual_clusters, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(trace.jobs[0].virtual_cluster, 1);
  EXPECT_EQ(trace.irregularities.out_of_order, 1);
  EXPECT_EQ(trace.irregularities.blank_lines, 1);
  EXPECT_EQ(trace.irregularities.rows, 3);
}

TEST(ReadTrace, PhillyJsonAddsUpAttemptsAndTheGpusOfTheFirst) {
  const Trace trace = read(R"([
    {"status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:20:00",
       "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu7"]}]},
      {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:30", "detail": [{"ip": "m1", "gpus": []}]},
      {"start_time": "2017-10-07 03:00:00", "end_time": null, "detail": []}]},
    {"vc": "v", "jobid": "no attempts", "submitted_time": "2017-10-07 01:00:00", "attempts": []},
    {"vc": "w", "jobid": "no GPU", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:20:00", "detail": [{"ip": "m", "gpus": []}]}]},
    {"vc": "w", "jobid": "no end", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "None", "detail": [{"ip": "m", "gpus": ["gpu0"]}]}]}])");
  EXPECT_EQ(trace.format, "philly-json");
  expect_jobs(trace, {{"a", kHour, 630, 3}});
  EXPECT_EQ(
      trace.irregularities.skipped,
      (std::map<Skipped, std::int64_t>{{Skipped::without_gpu, 1}, {Skipped::never_ran, 1}, {Skipped::unfinished, 1}}));
}

TEST(ReadTrace, PhillyJsonCountsTheAttemptsThatItLeavesOutOfJobs) {
  const std::string whole = R"({"start_time": 1, "end_time": 3, "detail": [{"gpus": ["g"]}]})";
  const std::string endless = R"({"start_time": 5, "end_time": null, "detail": [{"gpus": ["g"]}]})";
  const std::string unstarted = R"({"end_time": 9, "detail": [{"gpus": ["g"]}]})";
  const std::string backward = R"({"start_time": 9, "end_time": 1, "detail": [{"gpus": ["g"]}]})";
  std::vector<std::string> jobs;
  for (const auto& attempts : std::vector<std::vector<std::string>>{{endless, whole, unstarted, whole},
                                                                    {whole},
                                                                    {endless, unstarted},
                                                                    {endless, backward, whole},
                                                                    {whole, unstarted}})
    jobs.push_back(fmt::format(R"({{"submitted_time": 0, "attempts": [{}]}})", fmt::join(attempts, ",")));
  const Trace trace = read(fmt::format("[{}]", fmt::join(jobs, ",\n")), {.format = {}, .lenient = true});
  expect_jobs(trace, {{"0", 0, 4, 1}, {"1", 0, 2, 1}, {"4", 0, 2, 1}});
  // Those of jobs that are skipped are counted with their jobs.
  EXPECT_EQ(trace.irregularities.attempts_left_out, 3);
  EXPECT_EQ(trace.irregularities.skipped,
            (std::map<Skipped, std::int64_t>{{Skipped::unfinished, 1}, {Skipped::bad, 1}}));
}

TEST(ReadTrace, PhillyJsonNamesTheBadJob) {
  const std::string bad = R"([{"jobid": "x", "submitted_time": "2017-10-07", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:00:00", "detail": [{"gpus": ["g"]}]}]},
      {"jobid": "y", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]}])";
  EXPECT_TRUE(contains(error_of([&] { read(bad); }), ":1: job 1 (x): an attempt ends at 2017-10-07 01:00:00"));
  const Trace lenient = read(bad, {.format = {}, .lenient = true});
  expect_jobs(lenient, {{"y", kHour, 60, 1}});
  EXPECT_EQ(lenient.irregularities.skipped.at(Skipped::bad), 1);
  EXPECT_TRUE(contains(lenient.irregularities.first_bad, "job 1 (x)"));
  expect_error([] { read("[\n{\"jobid\": "); }, ":2: ", "parse error");
  expect_error([] { read("\n\n{\"a\": [1]}", {.format = "philly-json"}); }, ":3: ", "job 1: it is no object");
  expect_error([] { read("{\"a\": 1}\n"); }, "no 'attempts'");
  expect_error([] { read("[{\"submit\": 1}]\n"); }, "no 'attempts'");
}

TEST(ReadTrace, PhillyJsonIsReadAsAListAsLinesAndInsideAnObject) {
  const auto job = [](const std::string& id, int submitted) {
    return fmt::format(R"({{"jobid": "{}", "submitted_time": {}, "more": {{"tags": [1]}}, "attempts": [
      {{"start_time": 9, "end_time": 19, "detail": [{{"gpus": ["g", "h"]}}]}}]}})",
                       id, submitted);
  };
  const std::string a = job("a", 1), b = job("b", 5), mark = "\xEF\xBB\xBF";
  for (const std::string& text :
       {"[" + a + "," + b + "]", a + "\n" + b + "\n", a + b, "{\"jobs\": [" + a + "," + b + "]}",
        "{\"version\": {\"of\": [1]}, \"jobs\": [" + a + "," + b + "], \"count\": 2}\n"}) {
    for (const std::string& begun : {text, mark + text, mark + "\n " + text}) {
      SCOPED_TRACE(begun);
      const Trace trace = read(begun);
      EXPECT_EQ(trace.format, "philly-json");
      expect_jobs(trace, {{"a", 1, 10, 2}, {"b", 5, 10, 2}});
    }
  }
  expect_error([&] { read("{\"jobs\": [" + a + "],\n\"more\": [" + b + "]}"); }, ":3: ", "a second list, 'more'");
  expect_error([&] { read(a + "\n17\n"); }, ": job 2: it is no object");
  expect_error([&] { read(a + "\n{\"jobid\": "); }, ":3: ", "parse error");
}

TEST(ReadTrace, PhillyJsonRefusesWhatIsNoJob) {
  const std::string job = R"({"jobid": "y", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]})";
  for (const char* element : {"17", "\"text\"", "null", "[]", "[{\"jobid\": \"z\"}]"}) {
    const std::string text = "[\n" + std::string(element) + ",\n" + job + "]";
    EXPECT_TRUE(contains(error_of([&] { read(text); }), ":2: job 1: it is no object")) << element;
    const Trace lenient = read(text, {.format = {}, .lenient = true});
    expect_jobs(lenient, {{"y", kHour, 60, 1}});
    EXPECT_EQ(lenient.irregularities.skipped.at(Skipped::bad), 1) << element;
  }
}

TEST(ReadTrace, TablesOfOtherClusters) {
  expect_jobs(read("job_id,submission_time,duration,num_gpu\nf,5010,1265,1\ng,5016,2066,8\n"),
              {{"f", 5010, 1265, 1}, {"g", 5016, 2066, 8}});
  const Trace helios = read(
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
      "1,u,vcA,2,8,1,COMPLETED,2020-04-01 01:00:00,2020-04-01 02:00:00,2020-04-01 02:01:00,60,3600\n"
      "2,u,vcA,0,8,1,COMPLETED,2020-04-01 01:00:00,2020-04-01 02:00:00,2020-04-01 02:01:00,60,3600\n"
      "3,u,vcA,1,8,1,CANCELLED,2020-04-01 01:00:00,None,None,0,3600\n");
  EXPECT_EQ(helios.format, "helios");
  expect_jobs(helios, {{"1", kHour, 60, 2}});
  EXPECT_EQ(helios.irregularities.skipped,
            (std::map<Skipped, std::int64_t>{{Skipped::without_gpu, 1}, {Skipped::never_ran, 1}}));
  const Trace acme = read(
      "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,fail_time,stop_time,duration,"
      "queue,gpu_time\ndlc1,u,1,4.0,32,Eval,COMPLETED,2023-03-01 00:00:10+08:00,2023-03-01 00:00:12+08:00,2023-03-01 "
      "00:01:12+08:00,,,60.0,2,240\n");
  EXPECT_EQ(acme.format, "acme");
  expect_jobs(acme, {{"dlc1", 10, 60, 4}});
  const Trace openb = read(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
      "p0,88000,327680,8,1000,,LS,Succeeded,100,400,150\np1,1,1,1,220,,BE,Running,90,300,95\np2,1,1,1,500,,BE,Pending,"
      "95,"
      "300,\n");
  EXPECT_EQ(openb.format, "openb");
  expect_jobs(openb, {{"p1", 90, 205, 1}, {"p0", 100, 250, 8}});
}

TEST(ReadTrace, PaiPutsTheRolesOfAJobTogether) {
  const std::string rows =
      "j1,worker,3.0,Terminated,100,200,600,29,50,T4\nj1,ps,1.0,Terminated,50,900,600,29,,\n"
      "j2,tensorflow,1.0,Running,120,,600,29,100,T4\nj1,evaluator,1.0,Terminated,150,260,600,29,50,T4\n";
  for (const std::string& header : {std::string(), std::string("job_name,task_name,inst_num,status,start_time,end_time,"
                                                               "plan_cpu,plan_mem,plan_gpu,gpu_type\n")}) {
    const Trace trace = read(header + rows);
    EXPECT_EQ(trace.format, "pai");
    expect_jobs(trace, {{"j1", 100, 160, 2}});
    EXPECT_EQ(trace.irregularities.skipped, (std::map<Skipped, std::int64_t>{{Skipped::unfinished, 1}}));
  }
}

TEST(ReadTrace, WhatIsWrittenIsReadBack) {
  Trace trace = read(
      "vc,priority,submit_s,duration_s,deadline_s,budget_gpu_hours,job_id\n\"a,b\",2,1.5,2.25,9,,one\n,0,2,0,,3.5,"
      "two\n");
  EXPECT_EQ(trace.jobs[0].deadline_seconds, 9);
  EXPECT_TRUE(std::isinf(trace.jobs[0].budget) && std::isinf(trace.jobs[1].deadline_seconds));
  std::ostringstream written;
  write_trace(trace, written);
  const Trace again = read(written.str());
  EXPECT_EQ(again.jobs, trace.jobs);
  EXPECT_EQ(again.virtual_clusters, trace.virtual_clusters);
}

TEST(ReadTrace, BadRowsAreErrorsWithTheirLineOrCounted) {
  const std::string head = "submit_s,duration_s,gpus\n0,1,1\n";
  for (const auto& [row, what] :
       std::vector<std::pair<std::string, std::string>>{{"1,-2,1", "duration_s -2 is negative"},
                                                        {"1,2", "2 fields"},
                                                        {"1,2,1.5", "no count"},
                                                        {"1,2,-1", "no count"},
                                                        {"x,2,1", "no time"},
                                                        {"1,inf,1", "is no number"},
                                                        {"2017-10-09 00:00:00,2,1", "is a date"},
                                                        {"1e13,2,1", "30,000 years"}}) {
    const std::string message = error_of([&] { read(head + row + "\n"); });
    EXPECT_TRUE(contains(message, ":3: ") && contains(message, what)) << row << ": " << message;
    const Trace lenient = read(head + row + "\n", {.format = {}, .lenient = true});
    EXPECT_EQ(lenient.jobs.size(), 1U) << row;
    EXPECT_EQ(lenient.irregularities.skipped.at(Skipped::bad), 1) << row;
  }
}

/// Rows of a format that are jobs, and rows that can be none in a file of those.
struct Spoilt {
  std::string head;
  std::vector<std::string> good, bad;
};

std::vector<Spoilt> spoilt_formats() {
  return {
      {"job_id,submit_s,duration_s,gpus,vc,deadline_s",
       {"a,5,10,1,v,30", "b,7,10,2,w,", "c,6,10,1,v,"},
       {"x,2017-10-09 00:00:00,10,1,z,", "x,6,-1,1,z,", "x,6,10,1,z,2017-10-09 00:00:00", "x,6"}},
      {"timestamp,duration,num_gpus,gpu_time,cluster",
       {"2017-10-09 07:00:00,60,1,60,v", "2017-10-09 06:00:00,60,2,120,w", "2017-10-09 08:00:00,60,1,60,v"},
       {"600,60,1,60,z", "600,-60,1,60,z", "2017-10-09 07:00:00,60,x,60,z", "2017-10-32 07:00:00,60,1,60,z"}},
      {"job_id,submission_time,duration,num_gpu",
       {"a,100,60,1", "b,90,60,2", "c,200,60,1"},
       {"x,2017-10-09 07:00:00,60,1", "x,100,nothing,1", "x,100,60,0.5"}},
      {"job_id,gpu_num,submit_time,start_time,end_time,duration",
       {"a,1,10,20,30,", "b,1,15,20,30,10", "c,2,5,None,,", "d,2,5,20,,"},
       {"x,1,2017-10-09 07:00:00,20,30,", "x,1,10,30,20,", "x,1,10,2017-10-09 07:00:00,30,", "x,1,10,20,soon,"}},
      {"job_id,gpu_num,vc,submit_time,start_time,end_time,duration",
       {"a,1,v,2020-04-01 01:00:00,2020-04-01 02:00:00,2020-04-01 02:01:00,60",
        "b,0,v,2020-04-01 01:00:00,2020-04-01 02:00:00,2020-04-01 02:01:00,60",
        "c,1,w,2020-04-01 01:00:00,2020-04-01 02:00:00,2020-04-01 02:01:00,"},
       {"x,1,z,7200,2020-04-01 02:00:00,2020-04-01 02:01:00,60",
        "x,1,z,2020-04-01 01:00:00,2020-04-01 02:01:00,2020-04-01 02:00:00,", "x,1,z,today,1,2,3"}},
      {"name,num_gpu,creation_time,deletion_time,scheduled_time",
       {"a,8,100,400,150", "b,1,90,300,95", "c,1,95,300,"},
       {"x,1,100,2017-10-09 07:00:00,150", "x,1,100,140,150", "x,-1,100,400,150"}},
      {"job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
       {"a,worker,3,Terminated,100,200,600,29,50,T4", "b,worker,1,Running,120,,600,29,100,T4",
        "a,evaluator,1,Terminated,150,260,600,29,50,T4", "c,ps,1,Terminated,50,900,600,29,,"},
       {"a,chief,1,Terminated,90,80,600,29,100,T4", "x,chief,1,Terminated,90,80,600,29,100,T4",
        "a,chief,1,Terminated,90,late,600,29,100,T4", "x,chief,1,Terminated,early,80,600,29,100,T4",
        "x,chief,1,Terminated,,late,600,29,100,T4", "a,chief,-1,Terminated,10,800,600,29,100,T4", "a,chief"}},
      {"[",
       {R"({"jobid": "a", "vc": "v", "submitted_time": "2017-10-07 01:00:00", "attempts": [
          {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]})",
        R"({"jobid": "b", "vc": "w", "submitted_time": "2017-10-07 00:30:00", "attempts": []})",
        R"({"jobid": "c", "vc": "w", "submitted_time": "2017-10-07 00:30:00", "attempts": [
          {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]})"},
       {R"({"jobid": "x", "vc": "z", "submitted_time": 5, "attempts": [
          {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]})",
        R"({"jobid": "x", "vc": "z", "submitted_time": "2017-10-07 01:00:00", "attempts": [
          {"start_time": 5, "end_time": 6, "detail": [{"gpus": ["g"]}]}]})",
        R"({"jobid": "x", "vc": "z", "submitted_time": "2017-10-07 01:00:00", "attempts": [
          {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:00:00", "detail": [{"gpus": ["g"]}]}]})",
        R"({"jobid": "x", "vc": "z", "attempts": [
          {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]})"}},
  };
}

std::string file_of(const std::string& head, const std::vector<std::string>& rows) {
  const bool json = head == "[";
  return fmt::format("{}\n{}\n{}", head, fmt::join(rows, json ? ",\n" : "\n"), json ? "]\n" : "");
}

std::ptrdiff_t lines_of(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

/// That the rows' only bad one is left out as if it were not there, and counted, and is an error with its line.
void expect_left_out(const std::string& head, const std::vector<std::string>& good, std::size_t place,
                     const std::string& bad) {
  const TestFolder folder;
  std::vector<std::string> rows = good;
  rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(place), bad);
  const std::string text = file_of(head, rows);
  SCOPED_TRACE(text);
  const std::filesystem::path file = folder.write("spoilt", text);
  Trace expected = read_trace(folder.write("good", file_of(head, good)));
  Trace lenient = read_trace(file, {.format = {}, .lenient = true});
  ++expected.irregularities.rows;
  expected.irregularities.skipped[Skipped::bad] = 1;
  expected.irregularities.first_bad = error_of([&] { read_trace(file); });
  const std::string where = fmt::format("{}:{}: ", file.string(), lines_of(text.substr(0, text.find(bad))) + 1);
  EXPECT_TRUE(expected.irregularities.first_bad.starts_with(where)) << expected.irregularities.first_bad;
  EXPECT_EQ(lenient.irregularities, expected.irregularities);
  // Jobs without a name are called by the number of their row.
  for (Trace* trace : {&expected, &lenient}) {
    for (Job& job : trace->jobs) job.id.clear();
  }
  EXPECT_EQ(lenient.jobs, expected.jobs);
  EXPECT_EQ(lenient.virtual_clusters, expected.virtual_clusters);
  EXPECT_EQ(lenient.zero, expected.zero);
}

TEST(ReadTrace, ABadRowLeavesNoTraceInAnyFormat) {
  for (const Spoilt& format : spoilt_formats()) {
    std::vector<std::string> all_bad = format.bad;
    if (format.head != "[") all_bad.push_back("\"x" + format.good[0]);
    for (const std::string& bad : all_bad) {
      for (std::size_t place = 1; place <= format.good.size(); ++place)
        expect_left_out(format.head, format.good, place, bad);
    }
  }
}

TEST(ReadTrace, PhillyJsonTellsTheLineInFilesOfAnySize) {
  const auto job = [](int submitted, int end) {
    return fmt::format(R"({{"submitted_time": {}, "attempts": [{{"start_time": 1,{}"end_time": {},
      "detail": [{{"gpus": ["g"]}}]}}]}})",
                       submitted, std::string(static_cast<std::size_t>(submitted % 7), '\n'), end);
  };
  std::string text = "[";
  for (int good = 0; good < 4000; ++good) {
    text += job(good, 2) + (good % 3 == 0 ? ", " : ",\r\n");
    if (good % 500 != 0) continue;
    const std::string where = fmt::format(":{}: job {} ()", lines_of(text) + 1, good + 2);
    expect_error([&] { read(text + job(5, 0) + ",\n" + job(6, 2) + "]"); }, where);
  }
  EXPECT_GT(text.size(), 1U << 18);
}

TEST(ReadTrace, PhillyJsonRefusesAJobOfOverAMillionGpus) {
  std::string gpus = "0";
  for (int gpu = 0; gpu < 1'000'000; ++gpu) gpus += ",0";
  const std::string attempt =
      R"("submitted_time": 0, "attempts": [{"start_time": 1, "end_time": 2, "detail": [{"gpus": [)";
  const std::string list = "[\n{" + attempt + gpus + "]}]}]},\n{" + attempt + "0]}]}]}]";
  expect_error([&] { read(list); }, ":2: job 1 (): ", "over a million GPUs");
  expect_jobs(read(list, {.format = {}, .lenient = true}), {{"1", 0, 1, 1}});
}

TEST(ReadTrace, ABadRowDoesNotDecideBetweenSecondsAndDates) {
  const ReadOptions lenient{.format = {}, .lenient = true};
  const Trace table = read("submit_s,duration_s,deadline_s\n2017-10-09 00:00:00,1,soon\n5,1,9\n6,1,9\n", lenient);
  expect_jobs(table, {{"1", 5, 1, 1}, {"2", 6, 1, 1}});
  EXPECT_EQ(table.zero, "");
  const Trace list =
      read(R"([{"jobid": "x", "attempts": [{"start_time": 5, "end_time": 6, "detail": [{"gpus": ["g"]}]}]},
    {"jobid": "y", "submitted_time": "2017-10-07 01:00:00", "attempts": [
      {"start_time": "2017-10-07 01:10:00", "end_time": "2017-10-07 01:11:00", "detail": [{"gpus": ["g"]}]}]}])",
           lenient);
  expect_jobs(list, {{"y", kHour, 60, 1}});
}

TEST(ReadTrace, TwoColumnsForOneThingAreAnError) {
  for (const bool lenient : {false, true}) {
    expect_error([&] { read("submit_s,gpus,duration_s,num_gpus\n1,2,3,4\n", {.format = {}, .lenient = lenient}); },
                 ":1: columns 'gpus' and 'num_gpus' are two names of one thing; leave one of them out");
    expect_error([&] { read("submit_s,gpus,duration_s,gpus\n1,2,3,4\n", {.format = {}, .lenient = lenient}); },
                 ":1: two columns are named 'gpus'; leave one of them out");
  }
  expect_jobs(read("submit_s,duration_s,num_gpus\n1,2,3\n"), {{"0", 1, 2, 3}});
}

TEST(ReadTrace, ColumnsThatAreNotReadAreTold) {
  const auto unread = [](const std::string& columns, const std::string& row) {
    return fmt::format("{}", fmt::join(read(columns + "\n" + row + "\n").unread_columns, ","));
  };
  EXPECT_EQ(unread("submit_s,prority,duration_s,Vcs,gpus", "1,2,3,4,5"), "prority,Vcs");
  EXPECT_EQ(unread("job_id,submit_s,duration_s,num_gpus,vc,priority,deadline_s,budget_gpu_hours", "a,1,2,3,b,4,5,6"),
            "");
  EXPECT_EQ(unread("timestamp,duration,num_gpus,gpu_time,cluster", "1,2,3,6,v"), "gpu_time");
  EXPECT_EQ(unread("job_id,submission_time,duration,num_gpu", "a,1,2,3"), "");
  EXPECT_EQ(unread("job_id,user,gpu_num,submit_time,start_time,end_time,duration", "a,u,1,2,3,4,1"), "user");
  EXPECT_EQ(unread("job_id,user,gpu_num,submit_time,start_time,end_time,duration,vc", "a,u,1,2,3,4,1,v"), "user");
  EXPECT_EQ(unread("name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time", "a,1,9,1,3,2"), "gpu_milli");
  const std::string pai = "task_name,status,plan_cpu,plan_mem,gpu_type", role = "j,w,1,Terminated,1,2,6,2,50,T4";
  EXPECT_EQ(unread(role, role), pai);
  EXPECT_EQ(unread("job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type", role),
            pai);
}

TEST(ReadTrace, NamesMayBeSpelledWithCapitalsAndFieldsApartByTabsOrSemicolons) {
  const std::string head = "job_id,vc,gpu_num,submit_time,start_time,end_time,duration";
  const std::string rows =
      "1,v,8,2020-04-01 00:05:00+0800,2020-04-01 00:05:10+0800,2020-04-01 01:05:10+0800,3600\n"
      "2,w,1,2020-04-01 00:06:00 UTC,2020-04-01 00:06:10+08,2020-04-01 00:07:10 PDT,60\n";
  const Trace plain = read(head + "\n" + rows);
  expect_jobs(plain, {{"1", 300, 3600, 8}, {"2", 360, 60, 1}});
  for (const char* separator : {",", ", ", "\t", ";"}) {
    for (const char* names : {head.c_str(), "JobID,VC,GPU_Num,Submit Time,StartTime,END_TIME,Duration"}) {
      std::string text;
      for (const char letter : std::string(names) + "\n" + rows) {
        text += letter == ',' ? std::string(separator) : std::string(1, letter);
      }
      const Trace trace = read(text);
      EXPECT_EQ(trace.format, "helios") << text;
      EXPECT_EQ(trace.jobs, plain.jobs) << text;
      EXPECT_EQ(trace.zero, "2020-04-01") << text;
    }
  }
}

TEST(ReadTrace, JobListsOfPlainNamesAreRead) {
  for (const char* head : {"num_gpu,submit_time,model_name,duration,job_id", "gpus,submit,model,run_time,id",
                           "num_gpus,arrival_time,model,service_time,JobId"}) {
    const Trace trace = read(std::string(head) + "\n4,10,resnet,3600,b\n1,0,vgg,60.5,a\n0,5,vgg,60,c\n");
    EXPECT_EQ(trace.format, "jobs") << head;
    expect_jobs(trace, {{"a", 0, 60.5, 1}, {"b", 10, 3600, 4}});
    EXPECT_EQ(trace.irregularities.skipped.at(Skipped::without_gpu), 1);
    EXPECT_EQ(trace.unread_columns.size(), 1U);
  }
  const Trace ends = read("id,submit_time,start_time,end_time,num_gpus\na,0,5,25,2\nb,1,,,1\nc,2,7,,1\n");
  expect_jobs(ends, {{"a", 0, 20, 2}});
  EXPECT_EQ(ends.irregularities.skipped,
            (std::map<Skipped, std::int64_t>{{Skipped::never_ran, 1}, {Skipped::unfinished, 1}}));
  expect_error([] { read("submit_time,arrival_time,duration,gpus\n1,2,3,4\n"); }, "two names of one thing");
  // Names that tell no unit, or another one, are not guessed at.
  for (const char* head : {"submit_time,duration_minutes,gpus", "submit_ms,duration,gpus", "submit_time,duration"})
    expect_error([&] { read(std::string(head) + "\n1,2,3\n"); }, "of no known trace", "--columns submit=NAME");
}

TEST(ReadTrace, ColumnsMayBeNamed) {
  const std::string text = "when;took;cards;team;who;begun;done\n7;30;2;t;x;8;18\n3;20;1;s;y;4;9\n";
  const auto named = [&](const std::map<std::string, std::string>& columns) {
    return read(text, {.format = {}, .columns = columns});
  };
  const Trace trace =
      named({{"submit", "when"}, {"duration", "took"}, {"gpus", "cards"}, {"vc", "team"}, {"id", "Who"}});
  expect_jobs(trace, {{"y", 3, 20, 1}, {"x", 7, 30, 2}});
  EXPECT_EQ(trace.virtual_clusters, (std::vector<std::string>{"t", "s"}));
  EXPECT_EQ(trace.unread_columns, (std::vector<std::string>{"begun", "done"}));
  expect_jobs(named({{"submit", "when"}, {"start", "begun"}, {"end", "done"}}), {{"1", 3, 5, 1}, {"0", 7, 10, 1}});
  expect_error([&] { named({{"submit", "when"}}); }, "give submit=NAME,duration=NAME");
  expect_error([&] { named({{"submit", "when"}, {"end", "done"}}); }, "give submit=NAME,duration=NAME");
  expect_error([&] { named({{"submit", "when"}, {"duration", "tok"}}); }, ":1: no column is named 'tok'", "took");
  expect_error([&] { named({{"submit", "when"}, {"length", "took"}}); }, "'length' is nothing that a job has");
  expect_error([&] { read(text, {.format = "itp", .columns = {{"submit", "when"}}}); }, "keep one of them");
  expect_error([&] { read("[]", {.format = {}, .columns = {{"submit", "when"}}}); }, "columns are of CSV");
}

TEST(ReadTrace, PackedFilesAreNamedWithTheCommandThatUnpacksThem) {
  expect_error([] { read("\x1F\x8B\x08 packed"); }, "is gzip, not text; convert it: gunzip -c ");
  expect_error([] { read(std::string("s\0u\0b\0m\0", 8)); }, "is UTF-16, not text; convert it: iconv -f UTF-16LE");
}

TEST(ReadTrace, FilesThatAreNoTraceSaySo) {
  EXPECT_TRUE(contains(error_of([] { read(""); }), "is empty"));
  EXPECT_TRUE(contains(error_of([] { read("submit_s,duration_s\n"); }), "no job"));
  EXPECT_TRUE(contains(error_of([] { read("a,b\n1,2\n"); }), "of no known trace; give one of braid, philly-json"));
  EXPECT_TRUE(
      contains(error_of([] { read("submit_s,duration_s\n1,2\n", {.format = "slurm"}); }), "'slurm' is not known"));
  EXPECT_TRUE(contains(error_of([] { read("submit_s,duration_s\n1,2\n", {.format = "itp"}); }), "is of format braid"));
}

TEST(ReadTrace, ThePublicTraces) {
  const std::filesystem::path folder = std::filesystem::path(BRAID_SOURCE_DIR) / "../shared/traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the traces are not here";
  const Trace philly = read_trace(folder / "philly.csv");
  EXPECT_EQ(philly.jobs.size(), 82247U);
  EXPECT_EQ(philly.irregularities.blank_lines, 1);
  EXPECT_GT(philly.irregularities.out_of_order, 0);
  EXPECT_EQ(read_trace(folder / "itp_cluster02.csv").jobs.size(), 5778U);
  const Trace week = read_trace(folder / "philly_resampled_week.csv");
  const TraceStatistics statistics = statistics_of(week);
  EXPECT_EQ(statistics.jobs, 26107);
  EXPECT_NEAR(statistics.duration.mean / 60, 374.6, 0.05);
  EXPECT_NEAR(statistics.duration.deviation / 60, 618.8, 0.05);
  EXPECT_NEAR(statistics.jobs_per_minute, 2.590, 0.0005);
  EXPECT_NEAR(offered_load(week, 128, 1), 7.6, 0.05);
  EXPECT_NEAR(offered_load(week, 128), 20.9, 0.05);
}

}  // namespace
}  // namespace braid::traces
