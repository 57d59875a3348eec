//! Parsed part of an expression, with what is known of its value before it is evaluated.

/// Static knowledge about the value of an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StaticType {
    Number,
    /// A text, `true` or `none`.
    Scalar,
    /// A list of numbers and scalars.
    Scalars,
    Unknown,
}

/// A parsed part of an expression.
#[derive(Clone, Copy)]
pub(super) struct ExpressionPart {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) static_type: StaticType,
    /// True if a filter appended to the part applies to all of it.
    pub(super) is_tight: bool,
}

impl ExpressionPart {
    pub(super) fn is_literal(self) -> bool {
        matches!(self.static_type, StaticType::Number | StaticType::Scalar)
    }
}
