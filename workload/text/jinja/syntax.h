#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workload/text/jinja/value.h"

/// A template as a tree.
namespace braid::workload::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

/// What parts hold, by kind; a part that may be left out is null.
enum class ExpressionKind {
  constant,     ///< `value`
  name,         ///< of a variable
  list,         ///< items
  tuple,        ///< items
  mapping,      ///< key, value, key, value, ...
  attribute,    ///< [0].name
  item,         ///< [0][[1]]
  slice,        ///< [0][[1]:[2]:[3]], each of which may be left out
  call,         ///< function `name`(arguments): a variable
  method,       ///< [0].name(arguments)
  filter,       ///< [0] | name(arguments); within a block set [0] is left out
  test,         ///< [0] is name(arguments)
  negation,     ///< not [0]
  minus,        ///< -[0]
  plus,         ///< +[0]
  both,         ///< [0] and [1]
  either,       ///< [0] or [1]
  choice,       ///< [1] if [0] else [2], which may be left out
  comparison,   ///< [0] OPERATOR [1] OPERATOR [2] ...; `operators`: == != < <= > >= in "not in"
  concatenate,  ///< [0] ~ [1] ~ ...
  arithmetic,   ///< [0] `name` [1], of + - * / // % **
};

struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  int line = 1;
  int depth = 1;  ///< of expressions in each other, itself included
  std::string name;
  Value value;
  std::vector<ExpressionPointer> parts;
  std::vector<ExpressionPointer> arguments;
  std::vector<std::pair<std::string, ExpressionPointer>> keywords;
  std::vector<std::string> operators;
};

/// What an assignment or a loop gives a value: a name, a field of a namespace, or several names.
struct Target {
  std::vector<std::string> names;
  std::string field;      ///< of the namespace names[0]; empty: none
  bool is_tuple = false;  ///< the value is taken apart
};

struct Statement;
using Body = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPointer otherwise;  ///< may be left out
};

struct Statement {
  enum class Kind { text, output, choice, loop, assign, assign_block, macro, generation, leave, next };
  Kind kind = Kind::text;
  int line = 1;
  std::string text;             ///< of a text; name of a macro
  ExpressionPointer value;      ///< printed, assigned or walked over; the filters of a block set
  ExpressionPointer condition;  ///< of a choice; of the items of a loop, may be left out
  Target target;
  std::vector<Parameter> parameters;
  Body body, otherwise;  ///< of a choice, and of a loop without items
};

/// A macro, and the variables it sees. The scope outlives it: a value that holds a macro is held by scopes alone.
struct MacroInScope {
  const Statement* macro = nullptr;
  void* scope = nullptr;
};

}  // namespace braid::workload::jinja
