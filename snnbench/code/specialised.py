"""An adapter's source for one case and variant: their values in place of their names, and nothing that they rule out.

Adapters call their case `case` and the variant's name `variant` in all functions. Both become values, so the functions
lose these parameters. A branch that a value rules out goes, and so do refusals: the case ran.
"""

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from snnbench.cases.case import Case
from snnbench.cases.surrogate import FORMULAS

OWN_DECAYS = "decays"
"""The name of the decays of neurons that each have their own."""
REFUSALS = {"Unsupported", "Unavailable"}
KNOWN = ("case", "variant")
COMPARED: dict[type[ast.cmpop], Any] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


class Unknown(Exception):
    """The value of an expression is known at run time only."""


def value(node: ast.expr) -> Any:
    """The value of an expression of literals. Raises Unknown."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List():
            return tuple(value(each) for each in node.elts)
        case ast.UnaryOp(op=ast.Not()):
            return not value(node.operand)
        case ast.UnaryOp(op=ast.USub()):
            return -value(node.operand)
        case ast.Compare():
            sides = [value(each) for each in (node.left, *node.comparators)]
            pairs = zip(sides, node.ops, sides[1:], strict=False)
            return all(COMPARED[type(op)](left, right) for left, op, right in pairs if _is_compared(op))
    raise Unknown


def _is_compared(op: ast.cmpop) -> bool:
    if type(op) not in COMPARED:
        raise Unknown
    return True


class Specialiser(ast.NodeTransformer):
    """Puts values in place of `case` and `variant`, and leaves out what they rule out."""

    def __init__(self, case: Case, variant: str) -> None:
        self._case, self._variant = case, variant
        self._known: dict[str, ast.expr] = {}
        self._assigned: list[str] = []

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The variant's name, or what else the name is known to stand for."""
        if not isinstance(node.ctx, ast.Load):
            return node
        known = ast.Constant(self._variant) if node.id == "variant" else self._known.get(node.id)
        return node if known is None or isinstance(known, ast.Dict) else known

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A field of the case."""
        if isinstance(node.value, ast.Name) and node.value.id == "case":
            field = getattr(self._case, node.attr)
            return ast.Name(OWN_DECAYS, ast.Load()) if isinstance(field, np.ndarray) else ast.Constant(field)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The function without the known parameters. What its own names stand for is known within it."""
        outside = self._known, self._assigned
        self._known = dict(self._known)
        self._assigned = [
            one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        ]
        node.args.args = [each for each in node.args.args if each.arg not in KNOWN]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.body = [part for each in node.body for part in _listed(self.visit(each))]
        self._known, self._assigned = outside
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """The lambda without the known parameters."""
        node.args.args = [each for each in node.args.args if each.arg not in KNOWN]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """The call without the known arguments; `{...}.get(known, ...)` and `getattr(x, "known")` are looked up."""
        if isinstance(node.func, ast.Name) and node.func.id != "getattr":
            node.args = [each for each in node.args if not (isinstance(each, ast.Name) and each.id in KNOWN)]
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Dict() as table, attr="get"), args=[key, *default]):
                return self._chosen(table, key, next(iter(default), ast.Constant(None))) or node
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str() as name)]):
                return ast.Attribute(owner, name, ast.Load())
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """The entry of a literal dictionary, or the formula of a surrogate."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id="FORMULAS"), slice=ast.Constant(value=str() as name)):
                return ast.Name(FORMULAS[name].__name__, ast.Load())
        table = node.value
        if isinstance(table, ast.Name):
            table = self._known.get(table.id, table)
        return (self._chosen(table, node.slice) if isinstance(table, ast.Dict) else None) or node

    def _chosen(self, table: ast.Dict, key: ast.expr, default: ast.expr | None = None) -> ast.expr | None:
        """The entry of a dictionary with known keys; None if a key is unknown."""
        try:
            wanted = value(key)
            keys = [value(each) for each in table.keys if each is not None]
        except Unknown:
            return None
        return dict(zip(keys, table.values, strict=False)).get(wanted, default)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Without the operands that decide nothing."""
        self.generic_visit(node)
        stops = isinstance(node.op, ast.Or)
        left: list[ast.expr] = []
        for number, each in enumerate(node.values):
            try:
                known = bool(value(each))
            except Unknown:
                left.append(each)
                continue
            if known is stops:
                return ast.BoolOp(node.op, [*left, each]) if left else each
            if number == len(node.values) - 1 and not left:
                return each
        return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Its value, if that is known."""
        self.generic_visit(node)
        try:
            return ast.Constant(value(node))
        except (Unknown, TypeError):
            return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """The branch that a known test chooses."""
        self.generic_visit(node)
        try:
            return node.body if value(node.test) else node.orelse
        except Unknown:
            return node

    def visit_If(self, node: ast.If) -> Any:
        """The branch that a known test chooses; a refusal goes, since the case ran."""
        node.test = self.visit(node.test)
        if len(node.body) == 1 and _refuses(node.body[0]):
            return [part for each in node.orelse for part in _listed(self.visit(each))]
        try:
            chosen = node.body if value(node.test) else node.orelse
        except Unknown:
            node.body = [part for each in node.body for part in _listed(self.visit(each))] or [ast.Pass()]
            node.orelse = [part for each in node.orelse for part in _listed(self.visit(each))]
            return node
        return [part for each in chosen for part in _listed(self.visit(each))]

    def visit_Try(self, node: ast.Try) -> Any:
        """The body, if an error would be a refusal."""
        if all(_refuses(handler.body[-1]) for handler in node.handlers):
            return [part for each in node.body for part in _listed(self.visit(each))]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Nothing, if it is a requirement."""
        match node.value:
            case ast.Call(func=ast.Name(id="require")):
                return None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """The assignment. What a name stands for is known from here on, if the function assigns it once."""
        self.generic_visit(node)
        match node.targets:
            case [ast.Name(id=name)] if isinstance(node.value, ast.Dict | ast.Constant | ast.Name):
                if self._assigned.count(name) == 1:
                    self._known[name] = node.value
        return node


def _listed(part: Any) -> list[Any]:
    """What a visit returned, as a list."""
    return [] if part is None else part if isinstance(part, list) else [part]


def _refuses(statement: ast.stmt) -> bool:
    """Whether a statement raises a refusal."""
    match statement:
        case ast.Raise(exc=ast.Call(func=ast.Name(id=name))):
            return name in REFUSALS
    return False


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def names(node: ast.AST) -> set[str]:
    """All names that are read in a part."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


class _Unused(ast.NodeTransformer):
    """Takes out assignments, imports and functions whose names are not in `read`, and calls of `empty` functions.

    A decorator may keep a function, so a decorated one stays.
    """

    def __init__(self, read: set[str], empty: set[str]) -> None:
        self._read, self._empty = read, empty

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """The assignment of a name that is read, to something else than itself."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name not in self._read:
                return None
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)) if name == same:
                return None
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | None:
        """The change of a name that is read."""
        return None if isinstance(node.target, ast.Name) and node.target.id not in self._read else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        """The function, if it is read, without last parameters that it does not read and that are None if left out."""
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        read = set().union(*map(names, node.body))
        while node.args.defaults and _is_none(node.args.defaults[-1]) and node.args.args[-1].arg not in read:
            node.args.args.pop()
            node.args.defaults.pop()
        return node if node.name in self._read or node.decorator_list or node.name.startswith("_") else None

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST | None:
        """The class, if it is read, with all of its methods."""
        return node if node.name in self._read else None

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        """The modules that are read."""
        node.names = [each for each in node.names if (each.asname or each.name.partition(".")[0]) in self._read]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """The names that are read."""
        node.names = [each for each in node.names if (each.asname or each.name) in self._read]
        return node if node.names else None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A statement that is more than a call of an empty function."""
        match node.value:
            case ast.Call(func=ast.Name(id=name)) if name in self._empty:
                return None
        return node


def pruned(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements without those that nothing reads, and without what follows a return."""
    module = ast.Module(list(body), [])
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.Module):
            ends = [number for number, each in enumerate(node.body) if isinstance(each, ast.Return)]
            node.body = node.body[: ends[0] + 1] if ends else node.body
    while True:
        before = ast.dump(module)
        functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
        empty = {node.name for node in functions if all(isinstance(each, ast.Pass) for each in node.body)}
        _Unused(names(module), empty).visit(module)
        if ast.dump(module) == before:
            return module.body
