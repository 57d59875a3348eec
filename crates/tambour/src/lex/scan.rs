//! Searches for one to three bytes: a plain loop for text as short as a model's token, memchr otherwise.

/// Length below which calling a vector routine costs more than the loop.
const SHORT_LEN: usize = 12;

/// Offset of the first `needle` in `bytes`.
#[inline]
pub fn find(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == needle);
    }
    memchr::memchr(needle, bytes)
}

/// Offset of the first of two bytes.
#[inline]
pub fn find2(first: u8, second: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == first || byte == second);
    }
    memchr::memchr2(first, second, bytes)
}

/// Offset of the first of three bytes.
#[inline]
pub fn find3(first: u8, second: u8, third: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().position(|&byte| byte == first || byte == second || byte == third);
    }
    memchr::memchr3(first, second, third, bytes)
}

/// Offset of the last `needle` in `bytes`.
#[inline]
pub fn rfind(needle: u8, bytes: &[u8]) -> Option<usize> {
    if bytes.len() < SHORT_LEN {
        return bytes.iter().rposition(|&byte| byte == needle);
    }
    memchr::memrchr(needle, bytes)
}
