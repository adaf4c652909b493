#!/usr/bin/env python3
"""Writes tests/golden/chat_templates/expected.json: what transformers, with Jinja, makes of the templates in that folder
for several conversations, of small expressions, and of what is not to be rendered.

    python scripts/golden/make_chat_templates.py

Wants transformers and jinja2 (requirements_5.txt).
"""

import itertools
import json
import random
from pathlib import Path

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden" / "chat_templates"

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather.\nOf a place.",
            "parameters": {
                "type": "object",
                "properties": {
                    "place": {"type": "string", "description": "a town, \"Zürich\" <or> other"},
                    "days": {"type": "integer", "enum": [1, 2, 3]},
                    "more": {"type": "object", "properties": {"scale": {"type": "number", "default": 0.5}}},
                },
                "required": ["place"],
            },
        },
    },
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"properties": {}}}},
]


def turn(role: str, content, **more) -> dict:
    return {"role": role, "content": content} | more


CALL = {"id": "abcdefgh1", "type": "function", "function": {"name": "weather", "arguments": {"place": "Köln", "days": 2}}}
CONVERSATIONS = {
    "one": [turn("user", "Hello")],
    "pair": [turn("user", "2 + 2?"), turn("assistant", "4")],
    "system": [turn("system", "Be brief."), turn("user", "2 + 2?"), turn("assistant", " 4 \n"), turn("user", "Sure?")],
    "four": [
        turn("user", "  a\n\nb "),
        turn("assistant", "<think>\nhm\n</think>\n\nyes"),
        turn("user", "größer 😀 \"x\" 'y' \\ \t."),
        turn("assistant", "<think>\nho\n</think>\n\nno"),
    ],
    "empty": [turn("system", ""), turn("user", ""), turn("assistant", "")],
    "order": [turn("assistant", "First."), turn("assistant", "Again.")],
    "tools": [
        turn("system", "Use tools."),
        turn("user", "The weather?"),
        turn("assistant", "", tool_calls=[CALL]),
        turn("tool", "[21.5, \"sunny\"]", tool_call_id="abcdefgh1"),
        turn("assistant", "Sunny."),
        turn("user", "Thanks <b>\u2028\u00a0</b>"),
        turn("assistant", "You are welcome."),
    ],
    "parts": [
        turn("user", [{"type": "text", "text": " What "}, {"type": "text", "text": "now?"}]),
        turn("assistant", "Nothing."),
    ],
}

EXPRESSIONS = r"""
1 + 2 * 3 ~ 4
2 + 3 ~ '!'
-3 // 2
-3 % 2
7 // -2
7 % -2
-7 // -2
2 ** 3 ** 2
-2 ** 2
1 / 3
10 / 5
1e16
1e15
1.5e-7
0.0001
123456789.125
1_000
0.1 + 0.2
100000000000000000000.0
3 * 'ab'
'ab' * 0
[1, 2] + [3]
(1, 2) + (3,)
[1] * 3
1 if false
1 if true else 2
(1 if x else 2) ~ y
not true
not x is defined
x is not defined
x is defined and y
a is defined
a == b
undefined == x
none == none
1 == true
1 == 1.0
'1' == 1
[1, 2] == [1, 2]
(1, 2) == [1, 2]
{'a': 1} == {'a': 1.0}
1 < 2 < 3
1 < 3 < 2
1 < 2 == true
'a' < 'b'
[1, 2] < [1, 3]
'a' in 'abc'
'a' in ['abc']
'a' not in {'a': 1}
'x' in missing
1 in [1.0]
'a' and 'b'
'' or 'b'
0 or none
'abc'[1]
'abc'[-1]
'abc'[5]
'größer'[2:4]
'größer'[::-1]
'abc'[::2]
'abcdef'[4:1:-1]
'abcdef'[-3:]
'abcdef'[:-10]
'abcdef'[10:]
[1, 2, 3][::-1]
[1, 2, 3][1:][0]
[[1, 2], [3]][0][1]
'a' 'b' "c"
"\x41\u00e9\n\t\"\'\\ \d \101"
'it''s'
'a\'b' ~ "c'd"
['it\'s', 'say "x"', 'both \' "', 'tab\t', '\x01']
{'a': none, 'b': [true, {}], "c'": ()}
{'a': 1,}
[1,]
(1)
(1,)
()
1, 2
{'a': {'b': [5]}}.a.b.0
{'a': 1}['a']
{'a': 1}.b
{'a': 1}.b.c
none.a
missing
missing.a
missing()
missing + 1
missing ~ 'x'
missing | length
missing < 1
missing | list
missing | upper
missing | default('d')
'' | default('d')
'' | default('d', true)
none | default('d')
'' | d('e', boolean=true)
'  ab ' | trim
'xxabxx' | trim('x')
'  ab ' | upper | trim
' a '.strip() ~ '|' ~ ' a '.lstrip() ~ '|' ~ ' a '.rstrip()
'xyaxy'.strip('yx')
'abc'.strip('')
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
'a,b,,c'.rsplit(',', 1)
' a  b '.split()
' a  b  c '.split(none, 1)
' a  b  c '.rsplit(none, 1)
'a'.split('')
'a\nb\r\nc\n\nd\n'.splitlines()
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.endswith('bc')
'aaa'.replace('a', 'b')
'aaa'.replace('a', 'b', 2)
'aaa'.replace('', '-')
'aaa' | replace('a', 'bb', 1)
'hello wORLD-new'.title()
'hello wORLD-new (a)b' | title
'hELLO you'.capitalize() ~ ('hELLO' | capitalize)
'AbC'.lower() ~ 'AbC'.upper() ~ ('AbC' | lower) ~ ('AbC' | upper)
'abcabc'.find('c') ~ 'abcabc'.rfind('c') ~ 'abc'.find('x')
'äbc'.find('c')
'aaaa'.count('aa') ~ [1, 2, 1].count(1)
'-'.join(['a', 'b'])
'-'.join([1])
'abc'.removeprefix('ab') ~ 'abc'.removesuffix('bc')
'abc'.nothing
'abc'['nothing']
[1, 2].nothing
{'a': 1}.get('a') ~ {'a': 1}.get('b') ~ {'a': 1}.get('b', 2)
{'a': 1, 'b': 2}.items() | list
{'a': 1, 'b': 2}.keys() | list
{'a': 1, 'b': 2}.values() | list | sum
{'a': 1, 'b': 2} | items | list
{'b': 1, 'a': 2} | dictsort
{'b': 1, 'a': 2, 'C': 0} | dictsort(false, 'value')
{'b': 1, 'a': 2} | list
{'b': 1} | length
{'items': 5}['items']
'abc' | length
'größe' | count
[1, 2] | length
5 | length
[3, 1, 2] | sort
['b', 'A', 'c'] | sort
['b', 'A', 'c'] | sort(reverse=true, case_sensitive=true)
[{'n': 2}, {'n': 1}] | sort(attribute='n')
[1, 2, 3] | first ~ [1, 2, 3] | last
[] | first
'abc' | first ~ 'abc' | last
[1, 2, 3] | reverse | list
'abc' | reverse
['a', 'b'] | join
['a', 1, none] | join(', ')
[{'n': 1}, {'n': 2}] | join('+', attribute='n')
[{'n': {'m': 1}}, {'n': {}}] | map(attribute='n.m') | list
[{'n': 1}, {}] | map(attribute='n', default=0) | list
['a ', ' b'] | map('trim') | list
['a', 'b'] | map('replace', 'a', 'c') | join
[1, 2, 3, 4] | select('odd') | list
[1, 2, 3, 4] | reject('>', 2) | list
[0, 1, '', 'a'] | select | list
[{'r': 'u'}, {'r': 'a'}] | selectattr('r', 'equalto', 'u') | list
[{'r': 'u'}, {'x': 'a'}] | rejectattr('r', 'defined') | list
[{'r': 0}, {'r': 1}] | selectattr('r') | list | length
'x' if ([] | select('odd')) else 'y'
[1] | select | length
(([1, 2] | select) | list) + ['x']
['a', 'b', 'A', 'a'] | unique | list
[1, 2, 3] | sum
'42' | int ~ '4.7' | int ~ 'x' | int ~ 'x' | int(7) ~ 4.9 | int ~ none | int ~ ' +5 ' | int
'1.5' | float ~ 2 | float ~ 'x' | float
-5 | abs ~ 2.5 | abs
5 | string ~ [1] | string
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2, true, true)
'a\nb' | indent('> ')
'<a> & "b"' | safe
'x' | tojson
'<é"\\/\n\x7f>' | tojson
'é😀' | tojson(ensure_ascii=true)
[1, 2.0, true, none, 'a', {}, []] | tojson
{'b': 1, 'a': [1, {'c': ()}]} | tojson(indent=4)
{'b': 1, 'a': 2} | tojson(sort_keys=true)
{'b': 1} | tojson(separators=(',', ':'))
[] | tojson(indent=2)
missing | tojson
(1, 2) | tojson
1e20 | tojson
5 is odd ~ 4 is even ~ 6 is divisibleby 3 ~ 6 is divisibleby(4)
1 is number ~ true is number ~ 1.0 is float ~ 1 is integer ~ true is integer ~ 'a' is string
[] is sequence ~ 'a' is sequence ~ {} is sequence ~ 1 is sequence ~ [] is iterable ~ 1 is iterable
{} is mapping ~ [] is mapping ~ none is none ~ x is none ~ true is boolean ~ 1 is boolean
true is true ~ 1 is true ~ false is false ~ 0 is false ~ none is sameas none ~ true is sameas true
1 is eq 1 ~ 1 is ne 2 ~ 1 is lt 2 ~ 2 is ge 2 ~ 1 is in [1, 2] ~ 3 is not in([1])
'a' is equalto 'a'
'a' is not string
range(3) | list
range(1, 7, 2) | list
range(3, 0, -1) | list
range(0) | list
range(200000) | list
dict(a=1, b=2)
dict({'a': 1}, a=2)
namespace(a=1).a
[1, 2, 3] | map('string') | join
messages[0].role ~ messages[-1]['content']
messages | length ~ messages[1:] | length
messages | map(attribute='role') | unique | join(',')
messages == messages[:]
loop
raise_exception('no ' ~ 1)
1 + 'a'
'a' + 1
[1] + (1,)
none + 1
'a' < 1
5 in 5
'a' in none
[1, 2].a.b
'%'
"{{ '}}' }}"
{'a': {'b': {}}}
[1, 2, 3][true]
true + 1
9223372036854775807
- -1
+1
not not 1
1 ** -1
0 // 1
0 % 5
1 // 0
'a' ~ none ~ true ~ 1.0
"a" if "a" is string else "b"
'a' if 'a' is string and x is not defined
""" .strip("\n").split("\n")

# Whole small templates, of white space above all.
SNIPPETS = [
    "a\n  {% if true %}\n  b\n  {% endif %}\n  c\n",
    "a\n  {%- if true -%}\n  b\n  {%- endif -%}\n  c\n\n",
    "a {%+ if true +%}\n b {% endif %} c",
    "  {% if true %}x{% endif %}",
    "  {%+ if true %}x{% endif %}",
    "{{ 1 }}  {% if true %} x{% endif %}\n\ny",
    "{# c #}\n  {# d #}  \nx {#- e -#} y{# f #}\n",
    "\n\n{{- 'a' -}}\n\n",
    "a\r\nb\rc {% if true %}\r\nd{% endif %}",
    "{{ '{{' }}{ {% if true %}}{% endif %}{ {",
    "{{ {'a': {'b': 1}}['a'] }}|{{ {'a': {'b': 1}} }}",
    "{%- for x in [1, 2, 3] %}{{ x }}{{ ', ' if not loop.last }}{% endfor %}",
    "{% for x in [] %}{% else %}none{% endfor %}",
    "{% for x in [1, 2] %}{% set y = x %}{% endfor %}{{ y }}",
    "{% set y = 0 %}{% for x in [1, 2] %}{{ y }}{% set y = x %}{{ y }}{% endfor %}{{ y }}",
    "{% if true %}{% set y = 1 %}{% endif %}{{ y }}",
    "{% set a, b = 1, 2 %}{{ b }}{{ a }}",
    "{% for a, b in [[1, 2], (3, 4)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
    "{% for x in 'abé' %}{{ x }}.{% endfor %}{% for k in {'a': 1} %}{{ k }}{% endfor %}",
    "{% for x in none %}{% endfor %}",
    "{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1, 2, 3, 4] if x % 2 %}{{ loop.index }}:{{ x }}/{{ loop.length }}{{ loop.revindex }}{{ loop.previtem }} {% endfor %}",
    "{% for x in [1, 2] %}{% set o = loop %}{% for y in [3] %}{{ o.index }}{{ loop.depth }}{% endfor %}{% endfor %}",
    "{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=5) }}|{{ m(b=1, a=3) }}|{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(x=2) }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro m() %}{{ late }}{% endmacro %}{% set late = 3 %}{{ m() }}",
    "{% set t %} a {{ 1 }} {% endset %}[{{ t }}]{% set u | trim | upper %} b {% endset %}[{{ u }}]",
    "{% set t %}{% set inner = 5 %}{% endset %}{{ inner }}",
    "{% set ns = namespace(a=1) %}{% for i in range(3) %}{% set ns.a = ns.a * 2 %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
    "{% set d = {} %}{% set d.a = 1 %}",
    "{% generation %}x{{ 1 }}{% endgeneration %}\ny",
    "{% for m in messages %}{% generation %}{{ loop.index }}{{ m.role }}{% endgeneration %}{% endfor %}",
    "{% if a is defined %}1{% elif messages %}2{% else %}3{% endif %}",
    "{{ 'a' if messages else 'b' }}{{ messages[0]['role'] }}{{ messages.0.role }}",
    "{% set messages = messages[1:] %}{{ messages | length }}",
    "{% for m in messages %}{% set content = m.content %}{% if content is string %}{{ content }}{% endif %}{% endfor %}{{ content }}",
    "{{ raise_exception(\"words: 'x' \\\"y\\\"\") }}",
    "{{ [1,\n 2] }}\n{{ 'a\nb' }}",
    "{{ 'a' -}}   \n b{{- 'c' }}",
    "{%if true%}1{%endif%}{{1}}{{-1}}",
    "x{% set a = 1 -%}   \n  y{{ a }}",
    "{% for i in range(3) -%}\n {{ i }}\n{%- endfor %}\n",
    "{% for i in [[1], [2]] %}{% for j in i %}{{ j }}{% break %}{% endfor %}{% endfor %}",
    "{% set a = [1, 2] %}{% set b = a + [3] %}{{ a }}{{ b }}",
    "{{ messages | tojson }}",
    "{{ add_generation_prompt }}{{ tools }}{{ bos_token }}{{ documents }}",
]

ATOMS = (
    "1", "2", "-3", "0", "2.5", "'ab'", "'a b,c'", "''", "true", "false", "none", "missing", "[1, 2, 3]", "['b', 'a']",
    "[]", "{'a': 1, 'b': 'x'}", "{}", "(1, 'z')", "messages", "messages[1].content", "messages[0]['role']",
    "messages[0].nope", "range(4) | list", "'A-b c'",
)  # fmt: skip
INFIXES = "+ - * // % / ~ ** == != < <= > >= and or".split() + ["in", "not in"]
FILTERS = (
    "trim", "length", "list", "first", "last", "upper", "lower", "string", "int", "tojson", "join", "join('-')",
    "default('d')", "default('d', true)", "sort", "unique | list", "items | list", "title", "capitalize", "float", "abs",
    "sum", "replace('a', 'bb')", "map('string') | list", "select | list", "reject('none') | list", "reverse | list",
    "tojson(indent=1)", "dictsort",
)  # fmt: skip
METHODS = (
    "strip()", "split()", "split(',')", "upper()", "lower()", "startswith('a')", "replace('a', '')", "items() | list",
    "get('a')", "get('q', 5)", "role", "a", "rstrip('b')", "title()", "splitlines()", "find('b')", "count('a')",
)  # fmt: skip
TESTS = (
    "defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "integer", "boolean", "true",
    "float", "equalto(1)", "not none", "in [1, 2]",
)  # fmt: skip
BOUNDS = ("0", "-1", "1:", "::-1", ":2", "5", "1:3:2", "-2:")


def random_expression(source: random.Random, depth: int) -> str:
    """Of a few operations in each other, most of which make sense."""
    if depth == 0:
        return source.choice(ATOMS)
    part = f"({random_expression(source, depth - 1)})"
    other = f"({random_expression(source, depth - 1)})"
    return source.choice(
        (
            f"{part} {source.choice(INFIXES)} {other}",
            f"not {part}",
            f"{part} if {other} else {random_expression(source, depth - 1)}",
            f"{part}[{source.choice(BOUNDS)}]",
            f"{part} | {source.choice(FILTERS)}",
            f"{part}.{source.choice(METHODS)}",
            f"{part} is {source.choice(TESTS)}",
            f"[{part}, {other}]",
            f"{{'a': {part}, 'k': {other}}}",
            f"{part} ~ {other}",
        )
    )


VARIABLES = {"bos_token": "<s>", "eos_token": "</s>"}


def outcome(text: str, variables: dict) -> dict:
    """The text, or that an exception is raised, with the template's own words where they are that."""
    try:
        return {"text": _compile_jinja_template(text).render(**variables)}
    except jinja2.exceptions.TemplateRuntimeError:
        return {"fails": True}
    except jinja2.exceptions.TemplateSyntaxError as failure:
        raise SystemExit(f"no Jinja: {text!r}: {failure}") from failure
    except jinja2.exceptions.TemplateError as failure:
        return {"raises": str(failure)}
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, OverflowError):
        return {"fails": True}


def variables_of(conversation: str, prompt: bool, tools: bool) -> dict:
    return VARIABLES | {
        "messages": CONVERSATIONS[conversation],
        "tools": TOOLS if tools else None,
        "documents": None,
        "add_generation_prompt": prompt,
    }


def main() -> None:
    cases = []
    for file in sorted(FOLDER.glob("*.jinja")):
        text = file.read_text(encoding="utf-8")
        uses_tools = "tools" in text
        for conversation, prompt, tools in itertools.product(CONVERSATIONS, (False, True), (False, True)):
            if tools and not (uses_tools and conversation in ("pair", "tools")):
                continue
            result = outcome(text, variables_of(conversation, prompt, tools))
            cases.append({"template": file.stem, "messages": conversation, "prompt": prompt, "tools": tools} | result)
    small = []
    for text in [f"{{{{ {expression} }}}}" for expression in EXPRESSIONS] + SNIPPETS:
        small.append({"template": text} | outcome(text, variables_of("system", False, False)))
    source = random.Random(7)
    drawn = []
    for _ in range(400):
        # Of its own: one of Jinja's filters changes a list that it is given.
        variables = json.loads(json.dumps(variables_of("system", False, False)))
        text = f"{{{{ {random_expression(source, source.randint(1, 3))} }}}}"
        drawn.append({"template": text} | outcome(text, variables))
    parts = {"tools": TOOLS, "conversations": CONVERSATIONS, "cases": cases, "small": small, "drawn": drawn}
    lines = []
    for name, value in parts.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(each, ensure_ascii=True) for each in value)
            lines.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            lines.append(f"{json.dumps(name)}: {json.dumps(value)}")
    (FOLDER / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(cases)} renderings, {len(small)} small templates, {len(drawn)} drawn")


if __name__ == "__main__":
    main()
