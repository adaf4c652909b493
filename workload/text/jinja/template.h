#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "workload/text/jinja/calls.h"
#include "workload/text/jinja/lexer.h"
#include "workload/text/jinja/syntax.h"

namespace braid::workload::jinja {

/// A chat template: the part of Jinja 3.1 that these use, as transformers sets it up (trim_blocks, lstrip_blocks, break
/// and continue, {% generation %}, values that do not change but for namespaces, its own tojson). What is not built in
/// is refused, most of it when the template is read, and never taken for something else. Debian packages no
/// implementation of Jinja for C++: inja is another language, which takes and refuses other templates.
///
/// Immutable, so that threads may share one.
class Template {
 public:
  /// Throws Error "FILE:LINE: what; remedy" for what is no Jinja, or not built in.
  Template(std::string_view text, Source source);

  /// The text that it makes of these variables. Throws Raised with the template's own words where it raises an
  /// exception, and Error "what (FILE:LINE)" where Jinja would raise another, where something is not built in, and
  /// where it does far more than any conversation needs.
  std::string render(const Fields& variables) const;

 private:
  Source source_;
  Body body_;
};

}  // namespace braid::workload::jinja
