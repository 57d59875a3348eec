//! Part of an expression that the parser has read, with what is known of its value before it is evaluated.

/// Static knowledge about the value of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StaticType {
    /// A number: a literal, or arithmetic on such literals.
    Number,
    /// Literal text of bounded length, `true`, `false` or `none`.
    Scalar,
    /// A list of literals.
    LiteralList,
    /// Any value.
    Unknown,
}

/// Part of an expression.
#[derive(Clone, Copy)]
pub(super) struct ExpressionPart {
    /// Byte offset at which the part begins.
    pub(super) start: usize,
    /// Byte offset after the part.
    pub(super) end: usize,
    pub(super) static_type: StaticType,
    /// True if a filter appended to the part applies to all of it, without parentheses.
    pub(super) is_tight: bool,
}

impl ExpressionPart {
    /// Returns true for a literal that is not a list, and for arithmetic on numbers.
    pub(super) fn is_literal(self) -> bool {
        matches!(self.static_type, StaticType::Number | StaticType::Scalar)
    }
}
