#include "cli/support/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>

#include <boost/crc.hpp>
#include <unistd.h>

#include "base/error.h"

namespace braid::cli {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
std::string fixed(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>(number | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

/// Protocol buffers' fields: the number and wire type (0 varint, 1 of 64 bits, 2 of a length, 5 of 32 bits), then what
/// it holds.
std::string key(std::uint64_t field, std::uint64_t wire) {
  return varint(field << 3 | wire);
}
std::string text(std::uint64_t field, std::string_view bytes) {
  return key(field, 2) + varint(bytes.size()) + std::string(bytes);
}

std::string event_at(double seconds) {
  return key(1, 1) + fixed(seconds);
}

std::filesystem::path file_in(const std::filesystem::path& folder, double seconds) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return folder / fmt::format("events.out.tfevents.{:.0f}.{}.{}", seconds, host.data(), ::getpid());
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, double seconds) : file_(file_in(folder, seconds)) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  add_record(event_at(seconds) + text(3, "brain.Event:2"));
  flush();
}

std::uint32_t EventFile::masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> castagnoli;
  castagnoli.process_bytes(bytes.data(), bytes.size());
  return std::rotr(castagnoli.checksum(), 15) + 0xA282EAD8U;
}

void EventFile::add_scalar(std::string_view tag, std::int64_t step, double value, double seconds) {
  const std::string scalar = text(1, tag) + key(2, 5) + fixed(static_cast<float>(value));
  add_record(event_at(seconds) + key(2, 0) + varint(static_cast<std::uint64_t>(step)) + text(5, text(1, scalar)));
}

void EventFile::add_record(const std::string& event) {
  const std::string length = fixed(static_cast<std::uint64_t>(event.size()));
  added_ += length + fixed(masked_crc(length)) + event + fixed(masked_crc(event));
}

void EventFile::flush() {
  file_.append(added_);
  added_.clear();
}

namespace {

/// Since 1970.
double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventFile& TensorBoardLog::file_of(planner::TaskIndex task, double now) {
  return files_.try_emplace(task, folder_ / workload_.tasks[static_cast<std::size_t>(task)].name, now).first->second;
}

void TensorBoardLog::on_evaluation(const exec::EvaluationReport& report) {
  const double now = seconds_now();
  EventFile& file = file_of(report.task, now);
  file.add_scalar("eval_loss", report.step, report.loss.loss, now);
  if (workload_.tasks[static_cast<std::size_t>(report.task)].objective.pairs()) {
    file.add_scalar("eval_reward_margin", report.step, report.loss.margin, now);
    file.add_scalar("eval_reward_accuracy", report.step, report.loss.accuracy, now);
  }
  file.flush();
}

void TensorBoardLog::on_window(const exec::WindowReport& report) {
  const double now = seconds_now();
  std::set<planner::TaskIndex> told;
  for (const exec::StepMetrics& step : report.steps) {
    const workload::Task& task = workload_.tasks[static_cast<std::size_t>(step.task)];
    EventFile& file = file_of(step.task, now);
    file.add_scalar("loss", step.step, step.loss, now);
    file.add_scalar("learning_rate", step.step, step.learning_rate, now);
    file.add_scalar("gradient_norm", step.step, step.gradient_norm, now);
    if (step.seconds > 0)
      file.add_scalar("data_tokens_per_second", step.step, static_cast<double>(step.tokens) / step.seconds, now);
    if (task.objective.pairs()) {
      file.add_scalar("reward_margin", step.step, step.reward_margin, now);
      file.add_scalar("reward_accuracy", step.step, step.reward_accuracy, now);
    }
    told.insert(step.task);
  }
  for (const planner::TaskIndex task : told) files_.at(task).flush();
}

}  // namespace braid::cli
