"""Edits: small changes of one expression or statement that leave a Python source valid.

Comparisons, arithmetic and constants become others; conditions, terms and elements are dropped or negated; calls of
min, any, floor and the like become their opposites; statements are left out. Messages (f-strings), docstrings, types
and decorators stay as they are: no number or verdict rests on them.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {
    **{"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"},
    **{"floor": "ceil", "ceil": "floor", "median": "max", "fmean": "max"},
}


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of the bytes `start` to `end` by `text`; `change` describes it in one line.

    `source` is the line where it begins, without its indent.
    """

    line: int
    source: str
    start: int
    end: int
    text: str
    change: str

    def applied(self, source: str) -> str:
        """The source with the edit."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def edits(source: str) -> list[Edit]:
    """All edits of a source, by place, without duplicates and without invalid Python."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    by_place: dict[tuple[int, int, str], Edit] = {}
    lines = source.splitlines()
    for node, text in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = " ".join(source.encode()[start:end].decode().split())
        edit = Edit(node.lineno, lines[node.lineno - 1].strip(), start, end, text, f"{before} -> {text}")
        if before != text and _is_python(edit.applied(source)):
            by_place.setdefault((start, end, text), edit)
    return [by_place[place] for place in sorted(by_place)]


def _is_python(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


Change = tuple[ast.expr | ast.stmt, str]
"""A node, and the text to put in its place."""


def _changes(node: ast.AST) -> Iterator[Change]:
    """All changes within a node that can affect a number or a verdict."""
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.expr):
        yield from _of_expression(node)
    if isinstance(node, ast.stmt):
        yield from _of_statement(node)
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and name == "slice":
            value = node.slice.elts  # axis numbers and types cannot be dropped
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _of_expression(node: ast.expr) -> Iterator[Change]:
    match node:
        case ast.Compare(left, ops, comparators):
            for position, operator in enumerate(ops):
                for other in COMPARISONS[type(operator)]:
                    changed = [*ops[:position], other(), *ops[position + 1 :]]
                    yield node, _text(ast.Compare(left, changed, comparators))
        case ast.BinOp(left, operator, right) if not _is_type(node):
            if type(operator) in OPERATORS:
                yield node, _text(ast.BinOp(left, OPERATORS[type(operator)](), right))
            yield node, _text(left)
            yield node, _text(right)
        case ast.BoolOp(operator, values):
            yield node, _text(ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values))
            for position in range(len(values)):
                rest = values[:position] + values[position + 1 :]
                yield node, _text(rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest))
        case ast.UnaryOp(_, operand):
            yield node, _text(operand)
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value) | float(value)):
            yield from ((node, repr(other)) for other in (value + 1, value - 1, 2 * value))
        case ast.IfExp(_, body, orelse):
            yield node, _text(body)
            yield node, _text(orelse)
        case ast.Tuple(elements, ast.Load()) | ast.List(elements, ast.Load()) | ast.Set(elements) if len(elements) > 1:
            brackets = {ast.Tuple: ("(", ",)"), ast.List: ("[", "]"), ast.Set: ("{", "}")}[type(node)]
            for position in range(len(elements)):
                remaining = elements[:position] + elements[position + 1 :]
                yield node, ", ".join(map(ast.unparse, remaining)).join(brackets)
        case ast.Call(ast.Name(name), arguments, keywords) if name in OPPOSITES:
            yield node, _text(ast.Call(ast.Name(OPPOSITES[name]), arguments, keywords))
        case ast.Call(ast.Name("abs" | "round" | "sorted"), [argument, *_], _):
            yield node, _text(argument)
        case ast.Call(ast.Attribute(_, "abs" | "round" | "trunc" | "sqrt"), [argument, *_], _):
            yield node, _text(argument)
        case ast.Call(ast.Attribute(value, name), arguments, keywords) if name in OPPOSITES:
            yield node, _text(ast.Call(ast.Attribute(value, OPPOSITES[name]), arguments, keywords))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for generator in node.generators:
                for condition in generator.ifs:
                    yield condition, "True"
                    yield condition, f"(not {_text(condition)})"


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.If(test) | ast.While(test):
            yield test, f"(not {_text(test)})"
            yield test, "False"
        case ast.AugAssign(target, _, value):
            yield node, f"{ast.unparse(target)} = {ast.unparse(value)}"
            yield node, "pass"
        case ast.Expr(value) if not isinstance(value, ast.Constant):
            yield node, "pass"
        case ast.Raise() | ast.Break() | ast.Continue():
            yield node, "pass"
        case ast.Return(value) if value is not None and not _is_empty(value):
            yield node, "return None"
        case ast.Assign([ast.Attribute()], _):
            yield node, "pass"


def _is_type(node: ast.BinOp) -> bool:
    """Whether it is a union of types, as in `Array | float`."""
    sides = (node.left, node.right)
    return isinstance(node.op, ast.BitOr) and all(
        isinstance(side, ast.Name) and (side.id[0].isupper() or side.id in ("int", "str", "float")) for side in sides
    )


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _text(node: ast.expr) -> str:
    """Source of an expression, in brackets if it is not one word."""
    text = ast.unparse(node)
    return text if isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute) else f"({text})"
