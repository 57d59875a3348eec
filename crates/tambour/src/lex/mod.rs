//! Lexers: bytes to tokens. They know no dialect, buffer at most an unfinished token, and pass text on as
//! slices of the caller's chunk. Scanners and trackers that lexers and dialects share are here too.

pub mod code;
pub mod comment;
pub mod entity;
pub mod fence;
pub mod json;
pub mod marks;
pub mod markup;
pub mod prose;
pub mod scan;
pub mod seam;
pub mod space;
pub mod sse;
pub mod tag_sentence;
pub mod utf8;
pub mod weight;
