#pragma once

#include <cstdint>
#include <exception>

#include <omp.h>

namespace braid {

/// Worker threads of this process: what parallel_for, and the libraries on the same pool, use from now on.
inline void set_thread_count(int threads) {
  omp_set_num_threads(threads);
}

inline int thread_count() {
  return omp_get_max_threads();
}

/// Calls `body(i)` for i in [0, count) on the worker threads; runs alone when there are fewer than `least` items. The
/// bodies must not depend on each other, so the result is the same on any number of threads. The first exception of
/// any body is thrown again here.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t least, const Body& body) {
  std::exception_ptr failure;
#pragma omp parallel for schedule(static) if (count >= least)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(braid_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

/// The same for jobs of unlike size: each thread takes the next one that is left.
template <typename Body>
void parallel_jobs(std::int64_t count, const Body& body) {
  std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(braid_parallel_for)
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace braid
