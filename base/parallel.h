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

/// Keeps the first exception of bodies that run on several threads, as none may leave a parallel region.
class FirstException {
 public:
  template <typename Body>
  void guard(const Body& body, std::int64_t i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(braid_first_exception)
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
};

/// Calls `body(i)` for i in [0, count) on the worker threads; runs alone when there are fewer than `least` items. The
/// bodies must not depend on each other, so the result is the same on any number of threads. The first exception of
/// any body is thrown again here.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t least, const Body& body) {
  FirstException failure;
#pragma omp parallel for schedule(static) if (count >= least)
  for (std::int64_t i = 0; i < count; ++i) failure.guard(body, i);
  failure.rethrow();
}

/// The same for jobs of unlike size: each thread takes the next one that is left.
template <typename Body>
void parallel_jobs(std::int64_t count, const Body& body) {
  FirstException failure;
#pragma omp parallel for schedule(dynamic, 1) if (count > 1)
  for (std::int64_t i = 0; i < count; ++i) failure.guard(body, i);
  failure.rethrow();
}

}  // namespace braid
