//! Names of the operators and statements of the template engine, taken from its own syntax tree. An operator
//! that a new version of the engine adds makes the `match` here fail to compile until it has a name, and a
//! test demands a hostile case for each name.

use std::collections::BTreeSet;

use minijinja::machinery::ast::{BinOpKind, CallArg, CallType, CompareOpKind, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{parse, parse_expr};

/// Defines a function that names each kind of node, without a wildcard, and the list of the names. The name
/// is empty for a kind that is not an operator, and for a kind whose operators are named elsewhere.
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

kinds!(expression_name, EXPRESSIONS, &Expr<'_>,
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

kinds!(unary_name, UNARY, &UnaryOpKind,
    UnaryOpKind::Not => "not",
    UnaryOpKind::Neg => "-x",
);

kinds!(binary_name, BINARY, &BinOpKind,
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

kinds!(comparison_name, COMPARISONS, &CompareOpKind,
    CompareOpKind::Eq => "==",
    CompareOpKind::Ne => "!=",
    CompareOpKind::Lt => "<",
    CompareOpKind::Lte => "<=",
    CompareOpKind::Gt => ">",
    CompareOpKind::Gte => ">=",
    CompareOpKind::In => "in",
    CompareOpKind::NotIn => "not in",
);

kinds!(argument_name, ARGUMENTS, &CallArg<'_>,
    CallArg::Pos(_) => "",
    CallArg::Kwarg(..) => "",
    CallArg::PosSplat(_) => "*()",
    CallArg::KwargSplat(_) => "*()",
);

kinds!(call_name, CALLS, &CallType<'_, '_>,
    CallType::Function(_) => "f()",
    CallType::Method(..) => "",
    CallType::Object(_) => "f()",
);

kinds!(statement_name, STATEMENTS, &Stmt<'_>,
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

/// Names of the operators in an expression, and its methods as `.name()`; none if the engine cannot parse it.
#[must_use]
pub fn operators_of(source: &str) -> BTreeSet<String> {
    let mut walker = TemplateWalker::default();
    if let Ok(parsed) = parse_expr(source) {
        walker.visit_expression(&parsed);
    }
    walker.operators
}

/// Names of the statements in a template; none if the engine cannot parse it.
#[must_use]
pub fn statements_of(source: &str) -> BTreeSet<&'static str> {
    let mut walker = TemplateWalker::default();
    if let Ok(parsed) = parse(source, "template", Default::default()) {
        walker.visit_statement(&parsed);
    }
    walker.statements
}

/// Walker of a syntax tree that collects the names of operators and statements.
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

    fn visit_expressions<'a, 's: 'a>(&mut self, expressions: impl IntoIterator<Item = &'a Expr<'s>>) {
        expressions.into_iter().for_each(|expression| self.visit_expression(expression));
    }

    fn visit_expression(&mut self, node: &Expr<'_>) {
        self.add_operator(expression_name(node));
        match node {
            Expr::Var(_) | Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.visit_expression(&slice.expr);
                self.visit_expressions([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            Expr::UnaryOp(node) => {
                self.add_operator(unary_name(&node.op));
                self.visit_expression(&node.expr);
            }
            Expr::BinOp(node) => {
                self.add_operator(binary_name(&node.op));
                self.visit_expressions([&node.left, &node.right]);
            }
            Expr::Compare(node) => {
                self.visit_expression(&node.expr);
                for operand in &node.ops {
                    self.add_operator(comparison_name(&operand.op));
                    self.visit_expression(&operand.expr);
                }
            }
            Expr::IfExpr(node) => {
                self.visit_expressions([&node.test_expr, &node.true_expr]);
                self.visit_expressions(&node.false_expr);
            }
            Expr::Filter(node) => {
                self.visit_expressions(&node.expr);
                self.visit_arguments(&node.args);
            }
            Expr::Test(node) => {
                self.visit_expression(&node.expr);
                self.visit_arguments(&node.args);
            }
            Expr::GetAttr(node) => self.visit_expression(&node.expr),
            Expr::GetItem(node) => self.visit_expressions([&node.expr, &node.subscript_expr]),
            Expr::Call(node) => {
                let kind = node.identify_call();
                self.add_operator(call_name(&kind));
                if let CallType::Method(_, name) = kind {
                    self.add_operator(&format!(".{name}()"));
                }
                self.visit_expression(&node.expr);
                self.visit_arguments(&node.args);
            }
            Expr::List(node) => self.visit_expressions(&node.items),
            Expr::Tuple(node) => self.visit_expressions(&node.items),
            Expr::Map(node) => self.visit_expressions(node.keys.iter().chain(&node.values)),
        }
    }

    fn visit_arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            self.add_operator(argument_name(argument));
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            self.visit_expression(value);
        }
    }

    fn visit_statement(&mut self, node: &Stmt<'_>) {
        let name = statement_name(node);
        self.statements.extend(Some(name).filter(|name| !name.is_empty()));
        let bodies: &[&[Stmt<'_>]] = match node {
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
        bodies.iter().flat_map(|body| body.iter()).for_each(|child| self.visit_statement(child));
    }
}
