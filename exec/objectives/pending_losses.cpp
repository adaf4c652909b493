#include "exec/objectives/pending_losses.h"

#include "base/error.h"

namespace braid::exec {

/// What is still to be written must stay.
PendingLosses::~PendingLosses() {
  if (!pending_.empty()) device_.wait();
}

void PendingLosses::add(kernels::ConstVector losses, std::vector<Row> rows, Objective& objective) {
  BRAID_CHECK(losses.size() == rows.size(), "{} losses of {} rows", losses.size(), rows.size());
  Pending& added = pending_.emplace_back();
  added.losses.resize(losses.size());
  added.rows = std::move(rows);
  added.objective = &objective;
  device_.download(losses.data(), std::as_writable_bytes(std::span(added.losses)));
  added.there = device_.record();
  look();
}

void PendingLosses::look() {
  while (!pending_.empty() && pending_.front().there->ended()) {
    const Pending& first = pending_.front();
    for (std::size_t i = 0; i < first.rows.size(); ++i)
      first.objective->take(first.rows[i].sequence, double{first.losses[i]} * double{first.rows[i].weight});
    pending_.pop_front();
  }
}

void PendingLosses::settle() {
  if (!pending_.empty()) device_.wait();
  look();
}

}  // namespace braid::exec
