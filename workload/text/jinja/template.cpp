#include "workload/text/jinja/template.h"

#include "workload/text/jinja/parser.h"
#include "workload/text/jinja/renderer.h"

namespace braid::workload::jinja {

Template::Template(std::string_view text, Source source)
    : source_(std::move(source)), body_(parse(tokens_of(text, source_), source_)) {}

std::string Template::render(const Fields& variables) const {
  Renderer renderer(variables);
  try {
    return renderer.run(body_);
  } catch (const Raised&) {
    throw;
  } catch (const Error& failure) {
    throw error("{} ({})", failure.what(), source_.place(renderer.line()));
  }
}

}  // namespace braid::workload::jinja
