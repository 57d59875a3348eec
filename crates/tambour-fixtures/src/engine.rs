//! Operators and statements of the template engine, taken from its own syntax tree: one that a new version has does not compile
//! here before it has a name, and a name needs a hostile case.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{BinOpKind, CallArg, CallType, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{parse, parse_expr};

/// A function that names each kind, without a wildcard, and the list of these names; empty for what is no operator.
macro_rules! kinds {
    ($name:ident, $all:ident, $type:ty, $($kind:pat => $word:literal),* $(,)?) => {
        fn $name(kind: $type) -> &'static str {
            match kind {
                $($kind => $word,)*
            }
        }

        const $all: &[&str] = &[$($word),*];
    };
}

kinds!(expression, EXPRESSIONS, &Expr<'_>,
    Expr::Var(_) => "",
    Expr::Const(_) => "",
    Expr::Slice(_) => "[:]",
    Expr::UnaryOp(_) => "",
    Expr::BinOp(_) => "",
    Expr::Compare(_) => "",
    Expr::IfExpr(_) => "if",
    Expr::Filter(_) => "|",
    Expr::Test(_) => "is",
    Expr::GetAttr(_) => ".",
    Expr::GetItem(_) => "[]",
    Expr::Call(_) => "",
    Expr::List(_) => "",
    Expr::Tuple(_) => "",
    Expr::Map(_) => "{:}",
);

kinds!(unary, UNARY, &UnaryOpKind,
    UnaryOpKind::Not => "not",
    UnaryOpKind::Neg => "-x",
);

kinds!(binary, BINARY, &BinOpKind,
    BinOpKind::Eq => "==",
    BinOpKind::Ne => "!=",
    BinOpKind::Lt => "<",
    BinOpKind::Lte => "<=",
    BinOpKind::Gt => ">",
    BinOpKind::Gte => ">=",
    BinOpKind::ScAnd => "and",
    BinOpKind::ScOr => "or",
    BinOpKind::Add => "+",
    BinOpKind::Sub => "-",
    BinOpKind::Mul => "*",
    BinOpKind::Div => "/",
    BinOpKind::FloorDiv => "//",
    BinOpKind::Rem => "%",
    BinOpKind::Pow => "**",
    BinOpKind::Concat => "~",
    BinOpKind::In => "in",
);

kinds!(comparison, COMPARISONS, &CompareOpKind,
    CompareOpKind::Eq => "==",
    CompareOpKind::Ne => "!=",
    CompareOpKind::Lt => "<",
    CompareOpKind::Lte => "<=",
    CompareOpKind::Gt => ">",
    CompareOpKind::Gte => ">=",
    CompareOpKind::In => "in",
    CompareOpKind::NotIn => "not in",
);

kinds!(argument, ARGUMENTS, &CallArg<'_>,
    CallArg::Pos(_) => "",
    CallArg::Kwarg(..) => "",
    CallArg::PosSplat(_) => "*()",
    CallArg::KwargSplat(_) => "*()",
);

kinds!(call, CALLS, &CallType<'_, '_>,
    CallType::Function(_) => "f()",
    CallType::Method(..) => "",
    CallType::Object(_) => "f()",
);

kinds!(statement, STATEMENTS, &Stmt<'_>,
    Stmt::Template(_) => "",
    Stmt::EmitExpr(_) => "{{ }}",
    Stmt::EmitRaw(_) => "",
    Stmt::ForLoop(_) => "for",
    Stmt::IfCond(_) => "if",
    Stmt::WithBlock(_) => "with",
    Stmt::Set(_) => "set",
    Stmt::SetBlock(_) => "endset",
    Stmt::AutoEscape(_) => "autoescape",
    Stmt::FilterBlock(_) => "filter",
    Stmt::Macro(_) => "macro",
    Stmt::CallBlock(_) => "call",
    Stmt::Continue(_) => "continue",
    Stmt::Break(_) => "break",
    Stmt::Do(_) => "do",
);

/// Names of all operators that the engine has.
#[must_use]
pub fn operators() -> BTreeSet<&'static str> {
    let all = [EXPRESSIONS, UNARY, BINARY, COMPARISONS, ARGUMENTS, CALLS].concat();
    all.into_iter().filter(|name| !name.is_empty()).collect()
}

/// Names of all statements that the engine has.
#[must_use]
pub fn statements() -> BTreeSet<&'static str> {
    STATEMENTS.iter().copied().filter(|name| !name.is_empty()).collect()
}

/// Names of the operators in an expression, and its methods as `.name()`; none if the engine does not read it.
#[must_use]
pub fn operators_of(source: &str) -> BTreeSet<String> {
    let mut walker = TemplateWalker::default();
    if let Ok(read) = parse_expr(source) {
        walker.expression(&read);
    }
    walker.operators
}

/// Names of the statements in a template; none if the engine does not read it.
#[must_use]
pub fn statements_of(source: &str) -> BTreeSet<&'static str> {
    let mut walker = TemplateWalker::default();
    if let Ok(read) = parse(source, "template", Default::default()) {
        walker.statement(&read);
    }
    walker.statements
}

#[derive(Default)]
struct TemplateWalker {
    operators: BTreeSet<String>,
    statements: BTreeSet<&'static str>,
}

impl TemplateWalker {
    fn add_operator(&mut self, name: &str) {
        if !name.is_empty() {
            self.operators.insert(name.to_owned());
        }
    }

    fn expressions<'a, 's: 'a>(&mut self, all: impl IntoIterator<Item = &'a Expr<'s>>) {
        all.into_iter().for_each(|expression| self.expression(expression));
    }

    fn expression(&mut self, read: &Expr<'_>) {
        self.add_operator(expression(read));
        match read {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                self.expressions([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            Expr::UnaryOp(node) => {
                self.add_operator(unary(&node.op));
                self.expression(&node.expr);
            }
            Expr::BinOp(node) => {
                self.add_operator(binary(&node.op));
                self.expressions([&node.left, &node.right]);
            }
            Expr::Compare(node) => {
                self.expression(&node.expr);
                for operand in &node.ops {
                    self.add_operator(comparison(&operand.op));
                    self.expression(&operand.expr);
                }
            }
            Expr::IfExpr(node) => {
                self.expressions([&node.test_expr, &node.true_expr]);
                self.expressions(&node.false_expr);
            }
            Expr::Filter(node) => {
                self.expressions(&node.expr);
                self.arguments(&node.args);
            }
            Expr::Test(node) => {
                self.expression(&node.expr);
                self.arguments(&node.args);
            }
            Expr::GetAttr(node) => self.expression(&node.expr),
            Expr::GetItem(node) => self.expressions([&node.expr, &node.subscript_expr]),
            Expr::Call(node) => {
                let kind = node.identify_call();
                self.add_operator(call(&kind));
                if let CallType::Method(_, name) = kind {
                    self.add_operator(&format!(".{name}()"));
                }
                self.expression(&node.expr);
                self.arguments(&node.args);
            }
            Expr::List(node) => self.expressions(&node.items),
            Expr::Tuple(node) => self.expressions(&node.items),
            Expr::Map(node) => self.expressions(node.keys.iter().chain(&node.values)),
        }
    }

    fn arguments(&mut self, all: &[CallArg<'_>]) {
        for arg in all {
            self.add_operator(argument(arg));
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = arg;
            self.expression(value);
        }
    }

    fn statement(&mut self, read: &Stmt<'_>) {
        let name = statement(read);
        self.statements.extend(Some(name).filter(|name| !name.is_empty()));
        let bodies: &[&[Stmt<'_>]] = match read {
            Stmt::Template(node) => &[&node.children],
            Stmt::ForLoop(node) => &[&node.body, &node.else_body],
            Stmt::IfCond(node) => &[&node.true_body, &node.false_body],
            Stmt::WithBlock(node) => &[&node.body],
            Stmt::SetBlock(node) => &[&node.body],
            Stmt::AutoEscape(node) => &[&node.body],
            Stmt::FilterBlock(node) => &[&node.body],
            Stmt::Macro(node) => &[&node.body],
            Stmt::CallBlock(node) => &[&node.macro_decl.body],
            Stmt::EmitExpr(_)
            | Stmt::EmitRaw(_)
            | Stmt::Set(_)
            | Stmt::Continue(_)
            | Stmt::Break(_)
            | Stmt::Do(_) => &[],
        };
        bodies.iter().flat_map(|body| body.iter()).for_each(|child| self.statement(child));
    }
}
