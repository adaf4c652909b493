#include "traces/read_philly_json.h"

#include <istream>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace braid::traces {
namespace {

/// One job at a time is built up from the events of the text; what braid does not need is passed over unseen.
class PhillyEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `text` is what the events come from; it has been read up to the event at hand.
  PhillyEvents(SourceText& text, bool lenient, TraceBuilder& trace) : text_(text), lenient_(lenient), trace_(trace) {}

  bool null() override { return value(std::nullopt); }
  bool boolean(bool) override { return value(std::nullopt); }
  bool number_integer(number_integer_t number) override { return value(std::to_string(number)); }
  bool number_unsigned(number_unsigned_t number) override { return value(std::to_string(number)); }
  bool number_float(number_float_t, const string_t& text) override { return value(text); }
  bool string(string_t& text) override { return value(text); }
  bool binary(binary_t&) override { return value(std::nullopt); }

  /// Between two values of the text. Jobs that follow one another are read as those of a list are.
  void begin_value(bool list) {
    in_list_ = list;
    open_ = list ? "" : "[";
  }
  void finish() const {
    if (jobs_ > 0 && !any_attempts_)
      throw error("{}: its objects have no 'attempts', so it is no cluster_job_log of Philly's; give that, or CSV",
                  text_.file());
  }

  bool start_object(std::size_t) override {
    open_.push_back('{');
    if (at("[{")) {
      job_ = {};
      job_.line = text_.line();
    }
    if (at("[{[{") && list_ == "attempts") job_.attempts.emplace_back();
    return true;
  }
  bool end_object() override {
    const bool outermost = at("[{");
    const bool held_jobs = holds_list_ && !in_list_;
    open_.pop_back();
    if (outermost && held_jobs) holds_list_ = false;
    if (outermost && !held_jobs) finish_job();
    return true;
  }
  bool start_array(std::size_t) override {
    if (at("[")) refuse("it is no object; mend the list");
    if (!in_list_ && at("[{") && !job_.named && key_ != "attempts") return enter_list();
    open_.push_back('[');
    if (at("[{[")) list_ = key_;
    if (at("[{[{[")) inner_list_ = key_;
    if (at("[{[{[{[")) gpus_ = key_ == "gpus";
    return true;
  }
  bool end_array() override {
    if (at("[") && holds_list_) {
      open_ = "[{";  // back in the object that holds the list
      in_list_ = false;
      job_ = {};
    } else {
      open_.pop_back();
    }
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    if (at("[{") && (name == "attempts" || name == "jobid" || name == "submitted_time")) job_.named = true;
    if (at("[{") && name == "attempts") any_attempts_ = true;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& fault) override {
    throw error_at(text_.file(), text_.line(), fault.what(), "give Philly's cluster_job_log");
  }

 private:
  struct Attempt {
    std::optional<std::string> start, end;
    std::int64_t gpus = 0;
  };
  struct PhillyJob {
    std::string id, virtual_cluster;
    std::optional<std::string> submitted;
    std::vector<Attempt> attempts;
    int line = 0;        // where it begins
    bool named = false;  // it has a field of Philly's jobs
  };

  /// The list that an object holds stands for the text's own.
  bool enter_list() {
    if (holds_list_)
      throw error_at(text_.file(), text_.line(), fmt::format("the object holds a second list, '{}'", key_),
                     "give Philly's cluster_job_log: one list of jobs");
    in_list_ = holds_list_ = true;
    open_ = "[";
    return true;
  }
  bool at(std::string_view brackets) const { return open_ == brackets; }

  bool value(std::optional<std::string> text) {
    if (text && is_missing(*text)) text.reset();
    if (at("[")) {
      refuse("it is no object; mend the list");
    } else if (at("[{")) {
      if (key_ == "jobid") job_.id = text.value_or("");
      if (key_ == "vc") job_.virtual_cluster = text.value_or("");
      if (key_ == "submitted_time") job_.submitted = std::move(text);
    } else if (at("[{[{") && list_ == "attempts") {
      if (key_ == "start_time") job_.attempts.back().start = std::move(text);
      if (key_ == "end_time") job_.attempts.back().end = std::move(text);
    } else if (at("[{[{[{[") && list_ == "attempts" && inner_list_ == "detail" && gpus_) {
      ++job_.attempts.back().gpus;
    }
    return true;
  }

  void finish_job() {
    ++jobs_;
    try {
      add_job();
    } catch (const Error& wrong) {
      bad(fmt::format("{}:{}: job {} ({}): {}", text_.file(), job_.line, jobs_, job_.id, wrong.what()));
    }
  }

  /// What stands in the place of a job.
  void refuse(const char* why) {
    ++jobs_;
    bad(fmt::format("{}:{}: job {}: {}", text_.file(), text_.line(), jobs_, why));
  }

  void bad(const std::string& message) {
    if (!lenient_) throw Error(message);
    trace_.skip_bad(message);
  }

  void add_job() {
    if (job_.attempts.empty()) return trace_.skip(Skipped::never_ran);
    if (job_.attempts.front().gpus == 0) return trace_.skip(Skipped::without_gpu);
    if (job_.attempts.front().gpus > kMostGpus) throw error("it has over a million GPUs; mend the job");
    double seconds = 0;
    std::int64_t left_out = 0;
    for (const Attempt& attempt : job_.attempts) {
      if (!attempt.start || !attempt.end) {
        ++left_out;
        continue;
      }
      const double begin = trace_.moment(*attempt.start, "start_time"), end = trace_.moment(*attempt.end, "end_time");
      if (end < begin)
        throw error("an attempt ends at {}, before its start at {}; mend the job", *attempt.end, *attempt.start);
      seconds += end - begin;
    }
    if (left_out == std::ssize(job_.attempts)) return trace_.skip(Skipped::unfinished);
    if (!job_.submitted) throw error("it has no submitted_time; give one");
    Job job;
    job.id = job_.id;
    job.submit_seconds = trace_.moment(*job_.submitted, "submitted_time");
    job.duration_seconds = seconds;
    job.gpus = static_cast<std::int32_t>(job_.attempts.front().gpus);
    trace_.add(std::move(job), job_.virtual_cluster);
    trace_.count_attempts_left_out(left_out);
  }

  SourceText& text_;
  bool lenient_;
  TraceBuilder& trace_;
  std::string open_;         // brackets open now, from the list of jobs on
  bool in_list_ = false;     // a list of the text's, not just a job behind another
  bool holds_list_ = false;  // the object at hand has had such a list in a field
  bool any_attempts_ = false;
  std::string key_, list_, inner_list_;  // names last seen
  bool gpus_ = false;
  PhillyJob job_;
  std::int64_t jobs_ = 0;
};

}  // namespace

void read_philly_json(SourceText& text, bool lenient, TraceBuilder& trace) {
  PhillyEvents events(text, lenient, trace);
  std::istream in(&text);
  while (in >> std::ws && in.peek() != std::istream::traits_type::eof()) {
    const bool list = in.peek() == '[';
    events.begin_value(list);
    // The parser takes no more of the text than the value.
    nlohmann::json::sax_parse(in, &events, nlohmann::json::input_format_t::json, list);
  }
  events.finish();
}

}  // namespace braid::traces
