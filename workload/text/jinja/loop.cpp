#include "workload/text/jinja/loop.h"

#include "base/error.h"

namespace braid::workload::jinja {

Value loop_attribute(const Loop& loop, std::string_view name) {
  const auto index = static_cast<std::int64_t>(loop.index), length = static_cast<std::int64_t>(loop.items->size());
  const auto item = [&](std::size_t place, std::string_view end) {
    if (place < loop.items->size()) return (*loop.items)[place];
    return Value::undefined(fmt::format("there is no {} item of the loop", end));
  };
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(length - index);
  if (name == "revindex0") return Value::integer(length - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == length);
  if (name == "length") return Value::integer(length);
  if (name == "previtem") return item(loop.index - 1, "previous");
  if (name == "nextitem") return item(loop.index + 1, "next");
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  throw error("'loop.{}' is not built in", name);
}

}  // namespace braid::workload::jinja
