#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/node.h"

namespace braid::report {

/// A Timeline as braid writes it for Perfetto, or the jobs of a simulated cluster, whose nodes are `ranks` here.
struct Trace {
  struct Event {
    int rank = 0;
    int lane = 0;        ///< the thread's number: of a node, which place of its instances
    std::string stream;  ///< compute, send, recv, sync
    std::string kind;    ///< Forward, Backward, SendActivation, ...; job
    std::string name;
    std::string tasks;          ///< "reviews+quiz"; empty where it is of one microbatch of none
    double begin = 0, end = 0;  ///< seconds
  };
  std::vector<Event> events;                                               ///< by beginning
  std::map<int, std::vector<std::pair<double, double>>> memory;            ///< by rank: seconds, bytes
  std::map<int, std::string> ranks;                                        ///< their names
  std::map<std::string, std::vector<std::pair<double, double>>> counters;  ///< of a cluster: seconds, means

  double end() const;
  /// Begins at 0.
  void shift_to_zero();
  /// Of each rank and stream as many of its first events as the other has. Both are of one Program.
  Trace first_events_of(const Trace& other) const;
};

/// Whether it is of a cluster's jobs.
bool is_of_cluster(const Trace& trace);

bool is_trace(const Node& node);
/// Throws Error where the file is no trace of braid's.
Trace trace_from(const Node& node);

}  // namespace braid::report
