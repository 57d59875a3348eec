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
    let mut walk = Walk::default();
    if let Ok(read) = parse_expr(source) {
        walk.expression(&read);
    }
    walk.operators
}

/// Names of the statements in a template; none if the engine does not read it.
#[must_use]
pub fn statements_of(source: &str) -> BTreeSet<&'static str> {
    let mut walk = Walk::default();
    if let Ok(read) = parse(source, "template", Default::default()) {
        walk.statement(&read);
    }
    walk.statements
}

#[derive(Default)]
struct Walk {
    operators: BTreeSet<String>,
    statements: BTreeSet<&'static str>,
}

impl Walk {
    fn found(&mut self, name: &str) {
        if !name.is_empty() {
            self.operators.insert(name.to_owned());
        }
    }

    fn expressions<'a, 's: 'a>(&mut self, all: impl IntoIterator<Item = &'a Expr<'s>>) {
        all.into_iter().for_each(|one| self.expression(one));
    }

    fn expression(&mut self, read: &Expr<'_>) {
        self.found(expression(read));
        match read {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                self.expressions([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            Expr::UnaryOp(of) => {
                self.found(unary(&of.op));
                self.expression(&of.expr);
            }
            Expr::BinOp(of) => {
                self.found(binary(&of.op));
                self.expressions([&of.left, &of.right]);
            }
            Expr::Compare(of) => {
                self.expression(&of.expr);
                for one in &of.ops {
                    self.found(comparison(&one.op));
                    self.expression(&one.expr);
                }
            }
            Expr::IfExpr(of) => {
                self.expressions([&of.test_expr, &of.true_expr]);
                self.expressions(&of.false_expr);
            }
            Expr::Filter(of) => {
                self.expressions(&of.expr);
                self.arguments(&of.args);
            }
            Expr::Test(of) => {
                self.expression(&of.expr);
                self.arguments(&of.args);
            }
            Expr::GetAttr(of) => self.expression(&of.expr),
            Expr::GetItem(of) => self.expressions([&of.expr, &of.subscript_expr]),
            Expr::Call(of) => {
                let kind = of.identify_call();
                self.found(call(&kind));
                if let CallType::Method(_, name) = kind {
                    self.found(&format!(".{name}()"));
                }
                self.expression(&of.expr);
                self.arguments(&of.args);
            }
            Expr::List(of) => self.expressions(&of.items),
            Expr::Tuple(of) => self.expressions(&of.items),
            Expr::Map(of) => self.expressions(of.keys.iter().chain(&of.values)),
        }
    }

    fn arguments(&mut self, all: &[CallArg<'_>]) {
        for one in all {
            self.found(argument(one));
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = one;
            self.expression(value);
        }
    }

    fn statement(&mut self, read: &Stmt<'_>) {
        let name = statement(read);
        self.statements.extend(Some(name).filter(|name| !name.is_empty()));
        let bodies: &[&[Stmt<'_>]] = match read {
            Stmt::Template(of) => &[&of.children],
            Stmt::ForLoop(of) => &[&of.body, &of.else_body],
            Stmt::IfCond(of) => &[&of.true_body, &of.false_body],
            Stmt::WithBlock(of) => &[&of.body],
            Stmt::SetBlock(of) => &[&of.body],
            Stmt::AutoEscape(of) => &[&of.body],
            Stmt::FilterBlock(of) => &[&of.body],
            Stmt::Macro(of) => &[&of.body],
            Stmt::CallBlock(of) => &[&of.macro_decl.body],
            Stmt::EmitExpr(_)
            | Stmt::EmitRaw(_)
            | Stmt::Set(_)
            | Stmt::Continue(_)
            | Stmt::Break(_)
            | Stmt::Do(_) => &[],
        };
        bodies.iter().flat_map(|body| body.iter()).for_each(|one| self.statement(one));
    }
}
