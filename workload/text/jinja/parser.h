#pragma once

#include <vector>

#include "workload/text/jinja/lexer.h"
#include "workload/text/jinja/syntax.h"

namespace braid::workload::jinja {

/// The statements of a template. Throws Error that names the first thing in it that is no Jinja or is not built in: a
/// statement, filter, test, method, function or keyword.
Body parse(std::vector<Token> tokens, const Source& source);

}  // namespace braid::workload::jinja
