#include "planner/window/slice_bytes.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace braid::planner {
namespace {

class BytesWriter {
 public:
  template <typename T>
  void numbers(T* first, std::size_t count) {
    if (count > 0) bytes_.append(reinterpret_cast<const char*>(first), count * sizeof(T));
  }
  template <typename T>
  void size_of(const std::vector<T>& items) {
    const std::size_t count = items.size();
    numbers(&count, 1);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class BytesReader {
 public:
  explicit BytesReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  void numbers(T* first, std::size_t count) {
    BRAID_CHECK(count <= bytes_.size() / sizeof(T), "{} bytes are left of a slice, not {} of {}", bytes_.size(), count,
                sizeof(T));
    if (count > 0) std::memcpy(static_cast<void*>(first), bytes_.data(), count * sizeof(T));
    bytes_.remove_prefix(count * sizeof(T));
  }
  template <typename T>
  void size_of(std::vector<T>& items) {
    std::size_t count = 0;
    numbers(&count, 1);
    BRAID_CHECK(count <= bytes_.size(), "{} bytes are left of a slice, not {} entries", bytes_.size(), count);
    items.resize(count);
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

/// Goes through the fields of one thing: the same for who writes and who reads.
template <typename Bytes>
class Fields {
 public:
  explicit Fields(Bytes& bytes) : bytes_(bytes) {}

  template <typename... T>
  void all(T&... fields) {
    (field(fields), ...);
  }

 private:
  template <typename T>
  void field(T& plain) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.numbers(&plain, 1);
  }
  template <typename T>
  void field(std::vector<T>& items) {
    bytes_.size_of(items);
    if constexpr (std::is_trivially_copyable_v<T>) {
      bytes_.numbers(items.data(), items.size());
    } else {
      for (T& item : items) field(item);
    }
  }
  void field(Microbatch& one) { all(one.id, one.replica, one.segments); }
  void field(StageProgram& one) {
    all(one.replica, one.stage, one.layers, one.has_embedding, one.has_head, one.ranks, one.subgraphs, one.recompute,
        one.sequence_parallel, one.first_id, one.instructions, one.waits, one.parts);
  }
  void field(Group& one) { all(one.stages); }
  void field(PartialGradient& one) { all(one.task, one.global_batch, one.samples); }
  void field(Awaited& one) {
    all(one.id, one.kind, one.microbatches, one.channel, one.task, one.global_batch, one.layers);
  }
  void field(StageBoundary& one) { all(one.live, one.gradients, one.keys, one.awaited, one.next_batch); }
  void field(Boundary& one) { all(one.stages, one.messages); }
  void field(Program& one) {
    all(one.stages, one.channels, one.groups, one.microbatches, one.task_count, one.blocking_messages, one.before,
        one.after);
  }

  Bytes& bytes_;
};

template <typename Bytes>
void go_through(Slice& slice, Bytes& bytes) {
  Program& program = slice.program;
  Fields<Bytes>(bytes).all(slice.window, slice.steps, slice.microbatches, program, slice.begins);
}

}  // namespace

Slice part_of(const Slice& slice, StageIndex stage) {
  Slice part;
  part.window = slice.window;
  part.steps = slice.steps;
  part.begins = slice.begins;
  const Program& whole = slice.program;
  const auto mine = static_cast<std::size_t>(stage);
  Program& program = part.program;
  for (std::size_t s = 0; s < whole.stages.size(); ++s) {
    const StageProgram& other = whole.stages[s];
    if (s == mine) {
      program.stages.push_back(other);
    } else {
      program.stages.push_back({other.replica,
                                other.stage,
                                other.layers,
                                other.has_embedding,
                                other.has_head,
                                other.ranks,
                                other.subgraphs,
                                other.recompute,
                                other.sequence_parallel,
                                other.first_id,
                                {},
                                {},
                                {}});
    }
  }
  program.channels = whole.channels;
  program.groups = whole.groups;
  for (const Microbatch& microbatch : whole.microbatches) {
    if (microbatch.replica == whole.stages[mine].replica) program.microbatches.push_back(microbatch);
  }
  program.task_count = whole.task_count;
  program.blocking_messages = whole.blocking_messages;
  program.before = whole.before;
  program.after = whole.after;
  return part;
}

std::string to_bytes(const Slice& slice) {
  BytesWriter writer;
  // Nothing of it is changed: the fields are named once, for both ways.
  go_through(const_cast<Slice&>(slice), writer);
  return writer.take();
}

Slice slice_from_bytes(std::string_view bytes) {
  Slice slice;
  BytesReader reader(bytes);
  go_through(slice, reader);
  BRAID_CHECK(reader.is_at_end(), "a slice has more bytes than it should");
  return slice;
}

}  // namespace braid::planner
